# The part of the simulator that is SimGrid: a module beside the program, loaded when a run asks for
# it (sim/timed/wire_simgrid.c). So nothing else needs libsimgrid, or waits for it to start.
add_library(kbtp_simgrid MODULE sim/timed/wire_simgrid.cc)
set_target_properties(kbtp_simgrid PROPERTIES PREFIX "" OUTPUT_NAME kbtp-simgrid
                                              LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                                              CXX_VISIBILITY_PRESET hidden)
target_compile_options(kbtp_simgrid PRIVATE -ffp-contract=off) # as kbtp_sim
target_link_libraries(kbtp_simgrid PRIVATE kbtp::simgrid)
set_source_files_properties(
    sim/timed/wire_simgrid.c PROPERTIES
    COMPILE_DEFINITIONS "SIM_SIMGRID_INSTALLED=\"${CMAKE_INSTALL_FULL_LIBDIR}/kbtp\"")
# Who builds kbtp wants it too.
add_dependencies(kbtp kbtp_simgrid)
install(TARGETS kbtp_simgrid LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kbtp)

# What SimGrid takes without us, for bench/timed.
add_executable(bench-simgrid_flows bench/simgrid_flows.cc)
target_link_libraries(bench-simgrid_flows PRIVATE kbtp::simgrid)
set_target_properties(bench-simgrid_flows PROPERTIES OUTPUT_NAME simgrid_flows
                                                     RUNTIME_OUTPUT_DIRECTORY
                                                     ${PROJECT_BINARY_DIR}/bench)
