# cmake --install: the libraries, the public headers, the program, the documentation, and what
# find_package(Shardproof) reads.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Shardproof)

get_property(libraries GLOBAL PROPERTY SHARDPROOF_LIBRARIES)
install(TARGETS ${libraries} EXPORT ShardproofTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT ShardproofTargets NAMESPACE shardproof:: DESTINATION ${package_dir})
configure_package_config_file(cmake/ShardproofConfig.cmake.in ShardproofConfig.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(ShardproofConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ShardproofConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ShardproofConfigVersion.cmake
              cmake/ShardproofLibzip.cmake
        DESTINATION ${package_dir})

foreach(header IN LISTS shardproof_public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardproof/${folder})
endforeach()

install(TARGETS shardproof_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
