#pragma once
#define SHIFT 1.0f
