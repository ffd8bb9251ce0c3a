# Mutants: kbtp with one known mistake in ref/, to show that the checkers find it.
#
# tests/mutants/NAME.patch changes .c files of ref/. Patched copies of those files are compiled and
# linked, before the library of the unchanged ones, with the very objects that kbtp is made of. The
# result is kbtp-mutant-NAME, next to kbtp. Their names go into the header mutants.h.
#
# A copy replaces its original because the linker takes nothing from an archive that it does not
# lack; a copy without one of the original's functions fails to link, as the function is then
# defined twice.
option(KBTP_BUILD_MUTANTS "Build the mutants too; OFF: each only when it is asked for" ON)
find_program(PATCH patch)
if(NOT PATCH)
    message(FATAL_ERROR "patch is not installed: run scripts/setup")
endif()

# The files of ref/ that `patch_file` changes.
function(kbtp_mutated_files patch_file result)
    file(STRINGS ${patch_file} headers REGEX "^(---|\\+\\+\\+) ")
    set(files)
    foreach(header IN LISTS headers)
        if(NOT header MATCHES "^(--- a|\\+\\+\\+ b)/(ref/[a-z0-9_]+\\.c)([ \t]|$)")
            message(FATAL_ERROR "${patch_file}: '${header}': a mutant changes .c files of ref/ only")
        endif()
        list(APPEND files ${CMAKE_MATCH_2})
    endforeach()
    list(REMOVE_DUPLICATES files)
    if(NOT files)
        message(FATAL_ERROR "${patch_file}: changes no file")
    endif()
    set(${result} ${files} PARENT_SCOPE)
endfunction()

function(kbtp_add_mutant name patch_file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patch_file})
    kbtp_mutated_files(${patch_file} files)
    set(directory ${PROJECT_BINARY_DIR}/mutants/${name})
    list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
    list(TRANSFORM files PREPEND ${directory}/ OUTPUT_VARIABLE copies)
    add_custom_command(
        OUTPUT ${copies}
        COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/mutate.sh ${PATCH} ${PROJECT_SOURCE_DIR} ${directory}
                ${patch_file} ${files}
        DEPENDS ${patch_file} ${originals} cmake/mutate.sh
        COMMENT "Mutant ${name}"
        VERBATIM)
    add_executable(kbtp-mutant-${name} ${copies} $<TARGET_OBJECTS:kbtp_main>)
    set_target_properties(kbtp-mutant-${name} PROPERTIES C_EXTENSIONS OFF)
    if(NOT KBTP_BUILD_MUTANTS)
        set_target_properties(kbtp-mutant-${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    target_link_libraries(kbtp-mutant-${name} PRIVATE ${kbtp_libraries})
endfunction()

file(GLOB patch_files CONFIGURE_DEPENDS tests/mutants/*.patch)
set(names)
foreach(patch_file IN LISTS patch_files)
    cmake_path(GET patch_file STEM name)
    kbtp_add_mutant(${name} ${patch_file})
    list(APPEND names "\"${name}\"")
endforeach()

list(SORT names)
list(JOIN names ", \\\n    " KBTP_MUTANTS)
configure_file(cmake/mutants.h.in generated/mutants.h @ONLY)
