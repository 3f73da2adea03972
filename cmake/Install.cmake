# A tree that runs elsewhere: the executables, the LibTorch libraries that they load, and the
# Python package of the reports.
if(STRATAGEM_TORCH)
  install(TARGETS stratagem DESTINATION bin)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/reports/stratagem_reports" DESTINATION share/stratagem/reports
    FILES_MATCHING PATTERN "*.py" PATTERN "*.html" PATTERN "*.css" PATTERN "*.js")
  foreach(_dir IN LISTS LibTorch_LIBRARY_DIRS)
    file(GLOB _libraries "${_dir}/libtorch_cpu.so" "${_dir}/libc10.so" "${_dir}/libgomp*.so*"
      "${_dir}/libcudart.so*" "${_dir}/libcupti.so*" "${_dir}/libshm.so")
    install(FILES ${_libraries} DESTINATION lib)
  endforeach()
endif()
