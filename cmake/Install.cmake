# A tree that runs elsewhere: the executables that were built, the LibTorch libraries that they load,
# the Python package of the reports with what it requires, completion for shells, a man page, and for
# plug-ins the headers with a CMake package. share/stratagem/python names the interpreter of the source tree's environment, as the first
# line of an installed Python script does.
if(STRATAGEM_TORCH)
  get_property(_programs GLOBAL PROPERTY stratagem_programs)
  install(TARGETS ${_programs} DESTINATION bin OPTIONAL)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/reports/stratagem_reports" DESTINATION share/stratagem/reports
    COMPONENT reports FILES_MATCHING PATTERN "*.py" PATTERN "*.css" PATTERN "*.html" PATTERN "*.js" PATTERN "*.schema.json"
    PATTERN "__pycache__" EXCLUDE)
  install(FILES "${PROJECT_SOURCE_DIR}/tools/setup/requirements-run.txt" DESTINATION share/stratagem
    COMPONENT reports RENAME requirements.txt)
  install(CODE "
    set(_python \"${PROJECT_SOURCE_DIR}/.venv/bin/python\")
    if(EXISTS \"\${_python}\")
      file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/stratagem/python\" \"\${_python}\\n\")
    endif()" COMPONENT reports)
  set(_shell "${PROJECT_SOURCE_DIR}/tools/shell")
  install(FILES "${_shell}/stratagem.bash" DESTINATION share/bash-completion/completions
    COMPONENT shell RENAME stratagem)
  install(FILES "${_shell}/stratagem.zsh" DESTINATION share/zsh/site-functions COMPONENT shell
    RENAME _stratagem)
  install(FILES "${_shell}/stratagem.fish" DESTINATION share/fish/vendor_completions.d COMPONENT shell)
  install(FILES "${PROJECT_SOURCE_DIR}/tools/man/stratagem.1" DESTINATION share/man/man1
    COMPONENT shell)
  foreach(_dir IN LISTS LibTorch_LIBRARY_DIRS)
    file(GLOB _libraries "${_dir}/libtorch_cpu.so" "${_dir}/libc10.so" "${_dir}/libgomp*.so*"
      "${_dir}/libcudart.so*" "${_dir}/libcupti.so*" "${_dir}/libshm.so")
    install(FILES ${_libraries} DESTINATION lib)
  endforeach()

  include(CMakePackageConfigHelpers)
  set(_package "lib/cmake/Stratagem")
  get_filename_component(STRATAGEM_LIBTORCH_ROOT "${LibTorch_INCLUDE_DIR}" DIRECTORY)
  configure_file(cmake/StratagemConfig.cmake.in generated/StratagemConfig.cmake @ONLY)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/StratagemConfigVersion.cmake"
    COMPATIBILITY ExactVersion)
  install(DIRECTORY models strategies DESTINATION include/stratagem FILES_MATCHING PATTERN "*.h")
  install(FILES "${PROJECT_BINARY_DIR}/generated/StratagemConfig.cmake"
    "${PROJECT_BINARY_DIR}/generated/StratagemConfigVersion.cmake"
    "${STRATAGEM_PLUGIN_INTERFACE}" "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake"
    DESTINATION ${_package})

  add_custom_target(uninstall COMMENT "Removing the installed files"
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_BINARY_DIR} -P "${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake")
endif()
