# docs/NAME.SECTION.scd becomes man/NAME.SECTION.
find_program(SCDOC scdoc)
if(NOT SCDOC)
    message(FATAL_ERROR "scdoc is not installed: run scripts/setup")
endif()

file(GLOB sources CONFIGURE_DEPENDS docs/*.scd)
set(pages)
foreach(source IN LISTS sources)
    cmake_path(GET source STEM LAST_ONLY name)
    cmake_path(GET name EXTENSION LAST_ONLY section)
    string(REGEX REPLACE "^\\." "" section "${section}")
    set(page ${PROJECT_BINARY_DIR}/man/${name})
    add_custom_command(
        OUTPUT ${page}
        COMMAND sh -c "\"$1\" < \"$2\" > \"$3.new\" && mv \"$3.new\" \"$3\"" sh ${SCDOC} ${source}
                ${page}
        DEPENDS ${source}
        COMMENT "Manual page ${name}"
        VERBATIM)
    list(APPEND pages ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
add_custom_target(man ALL DEPENDS ${pages})
