# One target a folder: all of its .cpp files, several compiled together as one unit.
#
#   stratagem_folder(NAME KIND [LIBRARY...])  stratagem_NAME of this folder's sources. OBJECT: linked
#       whole into every program, so that what registers itself stays; STATIC: a program takes what
#       it uses. One of the libraries is stratagem_base (torch-free) or stratagem_torch.
#   stratagem_program(NAME SOURCE...)         an executable that can train.
#   stratagem_optimise(NAME LEVEL)            for a folder whose own loops are timed; the others spend
#       their time in LibTorch, waiting or writing, and -O1 compiles them in 60% of the time.
set(STRATAGEM_UNIT_SIZE 14 CACHE STRING "Sources compiled together as one unit; 1: each alone")

# stratagem_headers(NAME BASE HEADER...): headers that all targets above BASE include, precompiled
# once for all of them.
function(stratagem_headers name base)
  file(WRITE "${PROJECT_BINARY_DIR}/generated/${name}.cpp" "")
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/generated/${name}.cpp")
  target_link_libraries(${name} PUBLIC ${base})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

set(_headers <fmt/format.h> <nlohmann/json.hpp> <algorithm> <chrono> <filesystem> <functional> <map>
  <memory> <optional> <span> <string> <variant> <vector>)
add_library(stratagem_base INTERFACE)
target_include_directories(stratagem_base INTERFACE "${PROJECT_SOURCE_DIR}")
target_link_libraries(stratagem_base INTERFACE
  fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11 Threads::Threads)
stratagem_headers(stratagem_base_headers stratagem_base ${_headers} <CLI/CLI.hpp> <fmt/ranges.h>)

if(STRATAGEM_TORCH)
  add_library(stratagem_torch INTERFACE)
  target_link_libraries(stratagem_torch INTERFACE stratagem_base LibTorch::cpu)
  if(STRATAGEM_CUDA)
    target_link_libraries(stratagem_torch INTERFACE stratagem_cuda_runtime)
  endif()
  stratagem_headers(stratagem_torch_headers stratagem_torch ${_headers}
    <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>
    <torch/csrc/distributed/c10d/ProcessGroup.hpp>)
endif()

function(stratagem_target name)
  target_link_libraries(${name} PUBLIC ${ARGN})
  if(STRATAGEM_UNIT_SIZE GREATER 1)
    set_target_properties(${name} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${STRATAGEM_UNIT_SIZE})
  endif()
  if("stratagem_torch" IN_LIST ARGN)
    target_precompile_headers(${name} REUSE_FROM stratagem_torch_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM stratagem_base_headers)
  endif()
endfunction()

function(stratagem_optimise name level)
  target_compile_options(stratagem_${name} PRIVATE $<$<CONFIG:Release>:${level}>)
  if(STRATAGEM_SANITIZE)
    target_compile_options(stratagem_${name} PRIVATE -O1)
  endif()
  # GCC 12 crashes where a precompiled header was made at another level.
  set_target_properties(stratagem_${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

function(stratagem_folder name kind)
  file(GLOB _sources CONFIGURE_DEPENDS *.cpp)
  add_library(stratagem_${name} ${kind} ${_sources})
  stratagem_target(stratagem_${name} ${ARGN})
  if(kind STREQUAL "OBJECT")
    set_property(GLOBAL APPEND PROPERTY stratagem_objects stratagem_${name})
    if("stratagem_base" IN_LIST ARGN)
      set_property(GLOBAL APPEND PROPERTY stratagem_core_objects stratagem_${name})
    endif()
  endif()
endfunction()

function(stratagem_program name)
  get_property(_objects GLOBAL PROPERTY stratagem_objects)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PUBLIC ${_objects} stratagem_bench stratagem_allocator)
  stratagem_target(${name} stratagem_torch)
  set_target_properties(${name} PROPERTIES
    BUILD_RPATH "${LibTorch_LIBRARY_DIRS}" INSTALL_RPATH "$ORIGIN/../lib"
    ENABLE_EXPORTS ON DEFINE_SYMBOL "")  # plug-ins take their symbols from the program
endfunction()

# stratagem_choose(NAME CONDITION FILE OTHER): FILE where the condition holds, else OTHER.
function(stratagem_choose name condition file other)
  set(_left_out "${file}")
  if(${condition})
    set(_left_out "${other}")
  endif()
  get_target_property(_sources stratagem_${name} SOURCES)
  list(FILTER _sources EXCLUDE REGEX "/${_left_out}$")
  set_target_properties(stratagem_${name} PROPERTIES SOURCES "${_sources}")
endfunction()
