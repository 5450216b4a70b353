// The headers that nearly every file of the extension includes. CMake precompiles this file. No
// file includes it: each file names the headers that it uses. `make sanitize` builds without it,
// which fails if a room lacks an include.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/python.h"
