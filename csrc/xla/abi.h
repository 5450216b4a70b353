// The part of XLA's FFI interface for custom calls that a handler needs: its C structures, as
// versions 0.1 to 0.4 of it have them (JAX 0.6 to 0.11). Within a major version they only grow at
// their ends, and each contains its size. The build does not need XLA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xla_calls {

constexpr int kMajor = 0;
constexpr int kMinor = 4;

struct Error;             // XLA's own
struct ExecutionContext;  // likewise

struct Extension {
  size_t size;
  int type;
  Extension* next;
};
constexpr int kMetadataExtension = 1;

struct ApiVersion {
  size_t size;
  Extension* extensions;
  int major;
  int minor;
};

struct Metadata {
  size_t size;
  ApiVersion version;
  uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct ErrorArguments {
  size_t size;
  Extension* extensions;
  const char* message;
  int code;
};
// One of absl's status codes.
constexpr int kInvalidArgument = 3;
constexpr int kInternal = 13;

// The contents of an error. Version 0.4 writes the code even if the given size excludes it. Older
// versions do not.
struct DetailsArguments {
  size_t size;
  Extension* extensions;
  Error* error;
  const char* message;  // out: lives as long as the error
  int code;             // out
};

struct DestroyArguments {
  size_t size;
  Extension* extensions;
  Error* error;
};

struct StreamArguments {
  size_t size;
  Extension* extensions;
  ExecutionContext* context;
  void* stream;  // out
};

struct AllocateArguments {
  size_t size;
  Extension* extensions;
  ExecutionContext* context;
  size_t bytes;
  size_t alignment;  // a power of two
  void* data;        // out
};
// XLA refuses to allocate with a larger alignment. Its allocations on a GPU are aligned to 256
// bytes.
constexpr size_t kMostAlignment = 16;

struct FreeArguments {
  size_t size;
  Extension* extensions;
  ExecutionContext* context;
  size_t bytes;
  void* data;
};

struct OrdinalArguments {
  size_t size;
  Extension* extensions;
  ExecutionContext* context;
  int32_t ordinal;  // out
};

// The functions, in order. Functions that culaunch does not call have no type.
struct Api {
  size_t size;
  Extension* extensions;
  ApiVersion version;
  const void* internal;
  Error* (*create_error)(ErrorArguments*);
  void (*error_details)(DetailsArguments*);
  void (*destroy_error)(DestroyArguments*);
  void* register_handler;
  Error* (*stream)(StreamArguments*);
  void* register_type;
  void* context_data;
  void* set_state;
  void* state;
  Error* (*allocate)(AllocateArguments*);
  Error* (*free)(FreeArguments*);
  void* schedule;
  void* count_threads;
  void* create_future;
  void* set_available;
  void* set_error;
  void* run_id;
  Error* (*ordinal)(OrdinalArguments*);  // absent if `size` excludes it
};

struct XlaBuffer {
  size_t size;
  Extension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

// Arguments and results: buffers, each of type 1.
struct Buffers {
  size_t size;
  Extension* extensions;
  int64_t count;
  int* types;
  XlaBuffer** buffers;
};

struct ByteSpan {
  const char* data;
  size_t size;
};

struct Attributes {
  size_t size;
  Extension* extensions;
  int64_t count;
  int* types;
  ByteSpan** names;
  void** values;
};
constexpr int kString = 4;  // its value is a ByteSpan

struct CallFrame {
  size_t size;
  Extension* extensions;
  const Api* api;
  ExecutionContext* context;
  int stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
  void* future;
};
constexpr int kExecute = 3;

}  // namespace xla_calls
