# Removes the files that `cmake --install` wrote, by the manifests in the build folder.
#   cmake -DFOLDER=build -P cmake/Uninstall.cmake
file(GLOB _manifests "${FOLDER}/install_manifest*.txt")
if(NOT _manifests)
  message(FATAL_ERROR "${FOLDER} has no install_manifest.txt: nothing was installed from this build")
endif()
foreach(_manifest IN LISTS _manifests)
  file(STRINGS "${_manifest}" _files)
  foreach(_file IN LISTS _files)
    file(REMOVE "$ENV{DESTDIR}${_file}")
  endforeach()
  file(REMOVE "${_manifest}")
endforeach()
