// The structures of csrc/xla/abi.h beside those of XLA's own header: it compiles where they lie in
// memory alike.
#include <cstddef>

#include "xla/ffi/api/c_api.h"
// After it, for both have the names of the interface.
#include ABI

#define SAME_SIZE(ours, theirs) static_assert(sizeof(xla_calls::ours) == sizeof(theirs))
#define SAME(ours, member, theirs, name)                                      \
  static_assert(offsetof(xla_calls::ours, member) == offsetof(theirs, name)); \
  static_assert(sizeof(xla_calls::ours::member) == sizeof(theirs::name))
#define SAME_FUNCTION(member, name) SAME_MEMBER(member, XLA_FFI_##name)
#define SAME_MEMBER(member, name) SAME(Api, member, XLA_FFI_Api, name)

#if XLA_FFI_API_MINOR >= 4
// The same under other names; and an error says its code.
#define XLA_FFI_Extension_Base XLA_FFI_InternalExtension
#define XLA_FFI_Error_GetMessage XLA_FFI_Error_GetDetails
SAME_SIZE(DetailsArguments, XLA_FFI_Error_GetDetails_Args);
SAME(DetailsArguments, error, XLA_FFI_Error_GetDetails_Args, error);
SAME(DetailsArguments, message, XLA_FFI_Error_GetDetails_Args, message);
SAME(DetailsArguments, code, XLA_FFI_Error_GetDetails_Args, errc);
#else
SAME(DetailsArguments, error, XLA_FFI_Error_GetMessage_Args, error);
SAME(DetailsArguments, message, XLA_FFI_Error_GetMessage_Args, message);
#endif

SAME_SIZE(Extension, XLA_FFI_Extension_Base);
SAME(Extension, type, XLA_FFI_Extension_Base, type);
SAME(Extension, next, XLA_FFI_Extension_Base, next);
static_assert(xla_calls::kMetadataExtension == XLA_FFI_Extension_Metadata);

SAME_SIZE(ApiVersion, XLA_FFI_Api_Version);
SAME(ApiVersion, major, XLA_FFI_Api_Version, major_version);
SAME(ApiVersion, minor, XLA_FFI_Api_Version, minor_version);
static_assert(xla_calls::kMajor == XLA_FFI_API_MAJOR);

SAME(Metadata, version, XLA_FFI_Metadata, api_version);
SAME(Metadata, traits, XLA_FFI_Metadata, traits);
SAME(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);

SAME(ErrorArguments, message, XLA_FFI_Error_Create_Args, message);
SAME(ErrorArguments, code, XLA_FFI_Error_Create_Args, errc);
static_assert(xla_calls::kInvalidArgument == XLA_FFI_Error_Code_INVALID_ARGUMENT);
static_assert(xla_calls::kInternal == XLA_FFI_Error_Code_INTERNAL);
SAME(DestroyArguments, error, XLA_FFI_Error_Destroy_Args, error);

SAME(StreamArguments, context, XLA_FFI_Stream_Get_Args, ctx);
SAME(StreamArguments, stream, XLA_FFI_Stream_Get_Args, stream);
SAME(AllocateArguments, context, XLA_FFI_DeviceMemory_Allocate_Args, ctx);
SAME(AllocateArguments, bytes, XLA_FFI_DeviceMemory_Allocate_Args, size);
SAME(AllocateArguments, alignment, XLA_FFI_DeviceMemory_Allocate_Args, alignment);
SAME(AllocateArguments, data, XLA_FFI_DeviceMemory_Allocate_Args, data);
SAME(FreeArguments, context, XLA_FFI_DeviceMemory_Free_Args, ctx);
SAME(FreeArguments, bytes, XLA_FFI_DeviceMemory_Free_Args, size);
SAME(FreeArguments, data, XLA_FFI_DeviceMemory_Free_Args, data);

SAME(Api, version, XLA_FFI_Api, api_version);
SAME_FUNCTION(create_error, Error_Create);
SAME_FUNCTION(error_details, Error_GetMessage);
SAME_FUNCTION(destroy_error, Error_Destroy);
SAME_FUNCTION(stream, Stream_Get);
SAME_FUNCTION(allocate, DeviceMemory_Allocate);
SAME_FUNCTION(free, DeviceMemory_Free);
SAME(OrdinalArguments, context, XLA_FFI_DeviceOrdinal_Get_Args, ctx);
SAME(OrdinalArguments, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
SAME_FUNCTION(ordinal, DeviceOrdinal_Get);

SAME(XlaBuffer, dtype, XLA_FFI_Buffer, dtype);
SAME(XlaBuffer, data, XLA_FFI_Buffer, data);
SAME(XlaBuffer, rank, XLA_FFI_Buffer, rank);
SAME(XlaBuffer, dims, XLA_FFI_Buffer, dims);
SAME(Buffers, count, XLA_FFI_Args, size);
SAME(Buffers, types, XLA_FFI_Args, types);
SAME(Buffers, buffers, XLA_FFI_Args, args);
SAME(Buffers, buffers, XLA_FFI_Rets, rets);
SAME_SIZE(ByteSpan, XLA_FFI_ByteSpan);
SAME(ByteSpan, data, XLA_FFI_ByteSpan, ptr);
SAME(ByteSpan, size, XLA_FFI_ByteSpan, len);
SAME(Attributes, count, XLA_FFI_Attrs, size);
SAME(Attributes, types, XLA_FFI_Attrs, types);
SAME(Attributes, names, XLA_FFI_Attrs, names);
SAME(Attributes, values, XLA_FFI_Attrs, attrs);
static_assert(xla_calls::kString == XLA_FFI_AttrType_STRING);

SAME(CallFrame, api, XLA_FFI_CallFrame, api);
SAME(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
static_assert(xla_calls::kExecute == XLA_FFI_ExecutionStage_EXECUTE);
