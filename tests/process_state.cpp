#include "tests/process_state.h"

namespace stratagem {
namespace {

[[maybe_unused]] const bool checked = check_process_state(process_state);

}  // namespace
}  // namespace stratagem
