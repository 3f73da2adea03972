// The key-value store of a job, over c10d's TCPStore or FileStore.
#pragma once

#include <memory>

#include "strategies/ranks/key_value_store.h"

namespace stratagem::distributed {

/// Connects to c10d's TCPStore or FileStore. Throws CommunicationError, in one line, if the place
/// cannot be served or is not there in time.
std::unique_ptr<ranks::KeyValueStore> connect_store(const ranks::StoreEndpoint& place);

}  // namespace stratagem::distributed
