# Finds LibTorch: the C++ libraries of a PyTorch wheel, or an unpacked LibTorch archive.
#
#   LIBTORCH_ROOT   folder that holds include/ and lib/ (a wheel's `torch` package); by default the
#                   one in the project's .venv
#
# Targets: LibTorch::cpu (torch_cpu and c10), and LibTorch::cuda when torch_cuda lies there too.
# The wheel's own TorchConfig.cmake is not used: it demands a CUDA toolkit even for a CPU build.
# Variables: LibTorch_VERSION, LibTorch_LIBRARY_DIRS (for install), LibTorch_NVIDIA_ROOT.

set(LIBTORCH_ROOT "" CACHE PATH "LibTorch: a folder with include/ and lib/")
set(_root "${LIBTORCH_ROOT}")
if(NOT _root)
  file(GLOB _candidates "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  if(_candidates)
    list(GET _candidates 0 _root)
  endif()
endif()

find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS "${_root}/include" NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS "${_root}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_C10_LIBRARY c10 PATHS "${_root}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_CUDA_LIBRARY torch_cuda PATHS "${_root}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda PATHS "${_root}/lib" NO_DEFAULT_PATH NO_CACHE)

# A wheel states its version in version.py, an archive in build-version, both in a header.
foreach(_file "${_root}/version.py" "${_root}/build-version")
  if(EXISTS "${_file}" AND NOT LibTorch_VERSION)
    file(STRINGS "${_file}" _line REGEX "[0-9]+\\.[0-9]+\\.[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_line}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE
  "no LibTorch in '${_root}': run ./tools/run once, or pass -DLIBTORCH_ROOT=<folder with include/ and lib/>")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  # The NVIDIA libraries of a wheel lie beside the torch package, one folder a CUDA major version.
  get_filename_component(_site "${_root}" DIRECTORY)
  file(GLOB LibTorch_NVIDIA_ROOT "${_site}/nvidia/cu[0-9]*")
  file(GLOB _nvidia_libraries "${_site}/nvidia/*/lib")
  set(LibTorch_LIBRARY_DIRS "${_root}/lib" ${_nvidia_libraries})

  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    "${LibTorch_INCLUDE_DIR}" "${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  # LibTorch's headers bring an fmt of their own, which its libraries do not export and which is not
  # the system's: what includes them takes fmt from the headers alone.
  # Some of its classes have a member more without NDEBUG, with which its libraries were built.
  target_compile_definitions(LibTorch::cpu INTERFACE FMT_HEADER_ONLY=1 $<$<CONFIG:Debug>:NDEBUG>)
  target_link_libraries(LibTorch::cpu INTERFACE "${LibTorch_CPU_LIBRARY}" "${LibTorch_C10_LIBRARY}")
  foreach(_dir IN LISTS LibTorch_LIBRARY_DIRS)
    target_link_options(LibTorch::cpu INTERFACE "LINKER:-rpath-link,${_dir}")
  endforeach()
  # libtorch_cpu names libraries that a lean install leaves out and that are only loaded on a GPU.
  target_link_options(LibTorch::cpu INTERFACE "LINKER:--allow-shlib-undefined")

  if(LibTorch_CUDA_LIBRARY AND LibTorch_C10_CUDA_LIBRARY)
    add_library(LibTorch::cuda INTERFACE IMPORTED)
    target_link_libraries(LibTorch::cuda INTERFACE LibTorch::cpu
      "-Wl,--no-as-needed" "${LibTorch_CUDA_LIBRARY}" "${LibTorch_C10_CUDA_LIBRARY}" "-Wl,--as-needed")
  endif()
endif()
