#pragma once

// Load a plugin, run it and unload it, so many times.
bool RunPlugin(const char* path, int times);
