// The driver-API functions that culaunch uses, as a table of pointers that another driver (an
// emulator, a recorder) may fill.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "version.h"

// X(function, version of the CUDA driver API that its ABI is taken from, required)
//
// A function whose plain name means another form in CUDA 13's cuda.h than in CUDA 12's has the name
// of the form: both declare it.
#define CULAUNCH_DRIVER_FUNCTIONS(X)                         \
  X(cuInit, 2000, true)                                      \
  X(cuDriverGetVersion, 2020, true)                          \
  X(cuGetErrorName, 6000, true)                              \
  X(cuGetErrorString, 6000, true)                            \
  X(cuDeviceGet, 2000, true)                                 \
  X(cuDeviceGetCount, 2000, true)                            \
  X(cuDeviceGetName, 2000, true)                             \
  X(cuDeviceGetAttribute, 2000, true)                        \
  X(cuDevicePrimaryCtxRetain, 7000, true)                    \
  X(cuCtxGetCurrent, 4000, true)                             \
  X(cuCtxGetDevice, 2000, true)                              \
  X(cuCtxPushCurrent, 4000, true)                            \
  X(cuCtxPopCurrent, 4000, true)                             \
  X(cuCtxSynchronize, 2000, true)                            \
  X(cuStreamGetCtx, 9020, true)                              \
  X(cuStreamSynchronize, 2000, true)                         \
  X(cuStreamCreateWithPriority, 5050, true)                  \
  X(cuStreamDestroy, 4000, true)                             \
  X(cuThreadExchangeStreamCaptureMode, 10010, true)          \
  X(cuLibraryLoadData, 12000, true)                          \
  X(cuLibraryUnload, 12000, true)                            \
  X(cuLibraryGetKernel, 12000, true)                         \
  X(cuLibraryGetKernelCount, 12040, true)                    \
  X(cuLibraryEnumerateKernels, 12040, true)                  \
  X(cuLibraryGetGlobal, 12000, true)                         \
  X(cuKernelGetName, 12030, true)                            \
  X(cuKernelGetFunction, 12000, true)                        \
  X(cuKernelGetParamInfo, 12040, true)                       \
  X(cuKernelGetAttribute, 12000, true)                       \
  X(cuKernelSetAttribute, 12000, true)                       \
  X(cuFuncLoad, 12040, true)                                 \
  X(cuLaunchKernelEx, 11060, true)                           \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, true) \
  X(cuOccupancyMaxPotentialBlockSize, 6050, true)            \
  X(cuOccupancyMaxPotentialClusterSize, 11070, true)         \
  X(cuOccupancyMaxActiveClusters, 11070, true)               \
  X(cuPointerGetAttribute, 4000, true)                       \
  X(cuMemAlloc, 3020, true)                                  \
  X(cuMemFree, 3020, true)                                   \
  X(cuMemAllocAsync, 11020, true)                            \
  X(cuMemFreeAsync, 11020, true)                             \
  X(cuMemcpyHtoDAsync, 3020, true)                           \
  X(cuMemcpyDtoHAsync, 3020, true)                           \
  X(cuMemsetD8Async, 3020, true)                             \
  X(cuTensorMapEncodeTiled, 12000, false)                    \
  X(cuMemGetInfo, 3020, false)                               \
  X(cuCtxGetStreamPriorityRange, 5050, false)                \
  X(cuStreamQuery, 2000, false)                              \
  X(cuStreamWaitEvent, 3020, false)                          \
  X(cuEventCreate, 2000, false)                              \
  X(cuEventDestroy, 4000, false)                             \
  X(cuEventRecord, 2000, false)                              \
  X(cuEventQuery, 2000, false)                               \
  X(cuEventSynchronize, 2000, false)                         \
  X(cuEventElapsedTime, 2000, false)                         \
  X(cuMemcpyAsync, 4000, false)                              \
  X(cuMemsetD16Async, 3020, false)                           \
  X(cuMemsetD32Async, 3020, false)                           \
  X(cuMemsetD2D32Async, 3020, false)                         \
  X(cuMemHostAlloc, 2020, false)                             \
  X(cuMemFreeHost, 2000, false)                              \
  X(cuMemAllocManaged, 6000, false)                          \
  X(cuArray3DCreate, 3020, false)                            \
  X(cuArrayDestroy, 2000, false)                             \
  X(cuMemcpy3DAsync, 3020, false)                            \
  X(cuTexObjectCreate, 5000, false)                          \
  X(cuTexObjectDestroy, 5000, false)                         \
  X(cuSurfObjectCreate, 5000, false)                         \
  X(cuSurfObjectDestroy, 5000, false)                        \
  X(cuDevicePrimaryCtxRelease, 11000, false)                 \
  X(cuDeviceCanAccessPeer, 4000, false)                      \
  X(cuCtxEnablePeerAccess, 4000, false)                      \
  X(cuCtxGetId, 12000, false)                                \
  X(cuStreamGetGreenCtx, 12040, false)                       \
  X(cuStreamIsCapturing, 10000, false)                       \
  X(cuStreamBeginCapture, 10010, false)                      \
  X(cuStreamEndCapture, 10000, false)                        \
  X(cuStreamGetId, 12000, false)                             \
  X(cuGraphCreate, 10000, false)                             \
  X(cuGraphDestroy, 10000, false)                            \
  X(cuGraphClone, 10000, false)                              \
  X(cuGraphAddKernelNode, 12000, false)                      \
  X(cuGraphAddMemcpyNode, 10000, false)                      \
  X(cuGraphAddMemsetNode, 10000, false)                      \
  X(cuGraphAddHostNode, 10000, false)                        \
  X(cuGraphAddChildGraphNode, 10000, false)                  \
  X(cuGraphAddEmptyNode, 10000, false)                       \
  X(cuGraphAddEventRecordNode, 11010, false)                 \
  X(cuGraphAddEventWaitNode, 11010, false)                   \
  X(cuGraphAddNode_v2, 12030, false)                         \
  X(cuGraphAddDependencies_v2, 12030, false)                 \
  X(cuGraphDestroyNode, 10000, false)                        \
  X(cuGraphConditionalHandleCreate, 12030, false)            \
  X(cuGraphGetNodes, 10000, false)                           \
  X(cuGraphGetEdges_v2, 12030, false)                        \
  X(cuGraphNodeGetType, 10000, false)                        \
  X(cuGraphNodeSetParams, 12020, false)                      \
  X(cuGraphKernelNodeGetParams, 12000, false)                \
  X(cuGraphKernelNodeSetParams, 12000, false)                \
  X(cuGraphKernelNodeGetAttribute, 11000, false)             \
  X(cuGraphKernelNodeSetAttribute, 11000, false)             \
  X(cuGraphMemcpyNodeGetParams, 10000, false)                \
  X(cuGraphMemsetNodeGetParams, 10000, false)                \
  X(cuGraphHostNodeGetParams, 10000, false)                  \
  X(cuGraphChildGraphNodeGetGraph, 10000, false)             \
  X(cuGraphEventRecordNodeGetEvent, 11010, false)            \
  X(cuGraphEventWaitNodeGetEvent, 11010, false)              \
  X(cuGraphInstantiateWithFlags, 11040, false)               \
  X(cuGraphInstantiateWithParams, 12000, false)              \
  X(cuGraphUpload, 11010, false)                             \
  X(cuGraphLaunch, 10000, false)                             \
  X(cuGraphExecDestroy, 10000, false)                        \
  X(cuGraphExecUpdate, 12000, false)                         \
  X(cuGraphExecKernelNodeSetParams, 12000, false)            \
  X(cuGraphExecMemcpyNodeSetParams, 10020, false)            \
  X(cuGraphExecMemsetNodeSetParams, 10020, false)            \
  X(cuGraphExecHostNodeSetParams, 10020, false)              \
  X(cuGraphExecChildGraphNodeSetParams, 11010, false)        \
  X(cuGraphExecEventRecordNodeSetEvent, 11010, false)        \
  X(cuGraphExecEventWaitNodeSetEvent, 11010, false)          \
  X(cuGraphNodeSetEnabled, 11060, false)                     \
  X(cuGraphDebugDotPrint, 11030, false)

CULAUNCH_NAMESPACE_BEGIN

// The values of DLPack's DLDeviceType that say whose memory it is (dlpack.h).
enum DeviceType : int {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLROCM = 10,
  kDLCUDAManaged = 13,
};

// cuda.h maps some names to their newest version (cuMemAlloc is cuMemAlloc_v2). The macro argument
// below is expanded, and member and type follow it. The quoted name that is looked up in
// CULAUNCH_DRIVER_FUNCTIONS stays the plain one.
struct DriverTable {
#define CULAUNCH_MEMBER(function, version, required) decltype(&::function) function = nullptr;
  CULAUNCH_DRIVER_FUNCTIONS(CULAUNCH_MEMBER)
#undef CULAUNCH_MEMBER
};

// The note for a driver that checks addresses.
enum Note : unsigned {
  kNoteArray = 0,          // an array that the next launch of this thread will be given
  kNoteReadOnlyArray = 1,  // likewise, and nothing may be written to it
  kNoteLaunch = 2,         // a call begins: earlier notes do not apply to it
  kNoteFunction = 3,       // likewise, and the notes stay until the next call begins
  kNoteStorage = 4,        // the memory that an array is a view of, which the launch may touch, too
  kNoteReadOnlyStorage = 5,
};
using NoteArrayFunction = void (*)(const void* begin, size_t bytes, unsigned note);

// A driver that one copy of culaunch offers to the others in its process.
struct PublishedDriver {
  // Changes with CULAUNCH_DRIVER_FUNCTIONS and with this struct.
  static constexpr unsigned kVersion = 8;

  unsigned version;
  const char* name;
  const int* device_types;       // ended by -1
  NoteArrayFunction note_array;  // see Driver
  DriverTable table;
};

// Give each function of the table to visit(name, version, required, pointer to its pointer).
template <class Visit>
void ForEachFunction(DriverTable& table, Visit&& visit) {
#define CULAUNCH_VISIT(function, version, required) \
  visit(#function, version, required, reinterpret_cast<void**>(&table.function));
  CULAUNCH_DRIVER_FUNCTIONS(CULAUNCH_VISIT)
#undef CULAUNCH_VISIT
}

CULAUNCH_NAMESPACE_END
