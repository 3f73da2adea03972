# CUDA runtime and NCCL for the backend files: from an installed toolkit when there is one, else
# from the headers and libraries that the full wheel depends on. g++ alone compiles them.
if(NOT TARGET LibTorch::cuda)
  message(FATAL_ERROR "STRATAGEM_CUDA needs a LibTorch with torch_cuda: ./tools/run --full, or another LIBTORCH_ROOT")
endif()

add_library(stratagem_cuda_runtime INTERFACE)
find_package(CUDAToolkit QUIET)
if(LibTorch_NVIDIA_ROOT AND EXISTS "${LibTorch_NVIDIA_ROOT}/include/cuda_runtime_api.h")
  file(GLOB _cudart "${LibTorch_NVIDIA_ROOT}/lib/libcudart.so.*")
  target_include_directories(stratagem_cuda_runtime SYSTEM INTERFACE "${LibTorch_NVIDIA_ROOT}/include")
  # The runtime's headers include crt/host_config.h, which the wheel's packages lack but Triton, a
  # part of the full wheel, brings.
  if(NOT EXISTS "${LibTorch_NVIDIA_ROOT}/include/crt/host_config.h")
    target_include_directories(stratagem_cuda_runtime SYSTEM INTERFACE
      "${_site}/triton/backends/nvidia/include")
  endif()
  target_link_libraries(stratagem_cuda_runtime INTERFACE ${_cudart})
elseif(CUDAToolkit_FOUND)
  target_link_libraries(stratagem_cuda_runtime INTERFACE CUDA::cudart)
else()
  message(FATAL_ERROR "STRATAGEM_CUDA needs the CUDA runtime: the full wheel's packages, or a CUDA toolkit")
endif()

foreach(_dir IN LISTS LibTorch_LIBRARY_DIRS)
  if(EXISTS "${_dir}/../include/nccl.h")
    target_include_directories(stratagem_cuda_runtime SYSTEM INTERFACE "${_dir}/../include")
    file(GLOB _nccl "${_dir}/libnccl.so.*")
    target_link_libraries(stratagem_cuda_runtime INTERFACE ${_nccl})
  endif()
endforeach()
target_link_libraries(stratagem_cuda_runtime INTERFACE LibTorch::cuda)

# stratagem_header_version(VARIABLE HEADER MACRO): what a header of the backends says, or nothing.
function(stratagem_header_version VARIABLE HEADER MACRO)
  get_target_property(_folders stratagem_cuda_runtime INTERFACE_INCLUDE_DIRECTORIES)
  find_file(_header ${HEADER} PATHS ${_folders} ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
  if(_header)
    file(STRINGS "${_header}" _line REGEX "#define +${MACRO} +[0-9]+")
    string(REGEX MATCH "[0-9]+$" _version "${_line}")
  endif()
  set(${VARIABLE} "${_version}" PARENT_SCOPE)
endfunction()
stratagem_header_version(STRATAGEM_CUDA_VERSION cuda_runtime_api.h CUDART_VERSION)
stratagem_header_version(STRATAGEM_NCCL_VERSION nccl.h NCCL_VERSION_CODE)
target_compile_definitions(stratagem_cuda_runtime INTERFACE USE_CUDA USE_C10D_NCCL)
