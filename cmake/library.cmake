# What others link, installed with headers, pkg-config files and a CMake package:
#
#   kbtp::kbtp  libkbtp      the protocol: ref/, and of net/ what it needs
#   kbtp::sim   libkbtp-sim  the simulated RNIC as a provider within one process (sim/device.h)
#
# They are archives of the very objects that the program kbtp is linked from. With
# -DBUILD_SHARED_LIBS=ON both are shared, and all objects position-independent.
include(CMakePackageConfigHelpers)

function(kbtp_library name)
    set(target kbtp_library_${name})
    add_library(${target})
    add_library(kbtp::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C INTERFACE_LINK_LIBRARIES "" EXPORT_NAME ${name}
                                               VERSION ${PROJECT_VERSION} SOVERSION 0)
endfunction()

kbtp_library(kbtp)
set_target_properties(kbtp_library_kbtp PROPERTIES OUTPUT_NAME kbtp)
target_sources(
    kbtp_library_kbtp
    PRIVATE $<TARGET_OBJECTS:kbtp_net> $<TARGET_OBJECTS:kbtp_ref>
    PUBLIC FILE_SET HEADERS
           FILES net/mem.h
                 net/rdma.h
                 ref/counters.h
                 ref/cpu.h
                 ref/initiator.h
                 ref/partition.h
                 ref/pins.h
                 ref/pool.h
                 ref/ring.h
                 ref/session.h
                 ref/table.h
                 ref/target.h
                 ref/wire.h
                 ref/wire_names.h
                 ref/worker.h)

# Of sim/ the RNIC and what it stands on; no kinds of worlds, which need scenarios, checkers and
# libcyaml.
set(device_objects "/(arena|cpu[a-z_]*|device|rnic[a-z_]*|world)[.]c[.]o$")
kbtp_library(sim)
set_target_properties(kbtp_library_sim PROPERTIES OUTPUT_NAME kbtp-sim)
target_sources(
    kbtp_library_sim
    PRIVATE "$<FILTER:$<TARGET_OBJECTS:kbtp_sim>,INCLUDE,${device_objects}>"
    PUBLIC FILE_SET HEADERS
           FILES sim/device.h sim/rnic_config.h)
add_dependencies(kbtp_library_sim kbtp_sim)
target_link_libraries(kbtp_library_sim PUBLIC kbtp_library_kbtp)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kbtp)
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/kbtp)
install(TARGETS kbtp_library_kbtp kbtp_library_sim EXPORT kbtp
        FILE_SET HEADERS DESTINATION ${headers})
install(EXPORT kbtp NAMESPACE kbtp:: FILE kbtpConfig.cmake DESTINATION ${package})
# 0.x promises nothing from one minor version to the next.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kbtpConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kbtpConfigVersion.cmake DESTINATION ${package})

# Relative to the .pc file, so that an installation can be moved.
set(pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KBTP_PC_PREFIX ${pkgconfig} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH KBTP_PC_INCLUDEDIR ${pkgconfig} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
foreach(name kbtp kbtp-sim)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
