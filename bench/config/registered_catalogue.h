// The catalogue of this build: what has registered itself.
#pragma once

#include "bench/config/catalogue.h"

namespace stratagem::bench {

Catalogue registered_catalogue();

}  // namespace stratagem::bench
