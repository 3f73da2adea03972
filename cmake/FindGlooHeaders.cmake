# Finds Gloo's headers, which c10d's ProcessGroupGloo.hpp includes and the wheel lacks. The library
# itself is inside libtorch_cpu and must not be linked a second time.
#
# They lie in the system's include folder, so no target is needed.
find_path(Gloo_INCLUDE_DIR gloo/context.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GlooHeaders REQUIRED_VARS Gloo_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "no gloo/context.h: install libgloo-dev")
