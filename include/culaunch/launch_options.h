// The options of a launch. Each is declared here and nowhere else. The fields of LaunchConfig, the
// keywords of Python, the command line and the documentation come from these lists.
// docs/dev/launch_options.md says how to add one.
#pragma once

#include <cuda.h>

// Every launch has these. OPTION(kind, name, flag, text), where the flag is the bit that marks the
// option in a recorded launch; 0: it always has the option, or never.
#define CULAUNCH_LAUNCH_FIELDS(OPTION)                                                           \
  OPTION(required_dims, grid, 0,                                                                 \
         "Blocks in each dimension, x first. With clusters it still counts blocks.")             \
  OPTION(required_dims, block, 0, "Threads of a block in each dimension.")                       \
  OPTION(bytes, shared_memory, 32,                                                               \
         "Dynamic shared memory of a block in bytes. Above 48 KiB, the launch opts in.")         \
  OPTION(stream, stream, 0,                                                                      \
         "A handle, an object with ``__cuda_stream__``, or a PyTorch, CuPy or Numba stream. By " \
         "default, each call uses the current stream of the framework that owns its first "      \
         "array, or the default stream if there is no such array.")

// A launch may have these. Each is an attribute of the driver's. A row is
// KIND(name, flag, attribute, value, text).
//   name: the field and the keyword.
//   flag: the bit by which a recorded launch says that it has the option. It is never used again.
//   attribute: its CUlaunchAttributeID.
//   value: the member of CUlaunchAttributeValue that has it.
//   text: its documentation.
#define CULAUNCH_LAUNCH_ATTRIBUTES(DIMS, SWITCH, INT)                                             \
  DIMS(cluster, 8, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, clusterDim,                             \
       "Blocks of a cluster (sm_90 and newer). The grid must be a multiple of it.")               \
  /* CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: headers before CUDA 12.8 lack its name, and \
     preferredClusterDim has the same layout. */                                                  \
  DIMS(preferred_cluster, 16, static_cast<CUlaunchAttributeID>(11), clusterDim,                   \
       "A larger cluster for the driver to use where it can (drivers for CUDA 12.8 and newer). "  \
       "It needs `cluster`, the smallest one that will do.")                                      \
  SWITCH(spread_clusters, 64, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,           \
         clusterSchedulingPolicyPreference,                                                       \
         "Spreads the blocks of each cluster over the multiprocessors, as Triton does.")          \
  SWITCH(cooperative, 1, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative,                            \
         "Makes all blocks resident at once, for grid-wide synchronization.")                     \
  SWITCH(programmatic, 2, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,                  \
         programmaticStreamSerializationAllowed,                                                  \
         "Lets the kernel start before the previous one in the stream ends (\"Programmatic "      \
         "Dependent Launch and Synchronization\" in the CUDA programming guide).")                \
  INT(priority, 4, CU_LAUNCH_ATTRIBUTE_PRIORITY, priority,                                        \
      "The launch's priority instead of the stream's. A lower number is more urgent.")

// For what does not need one of the three kinds.
#define CULAUNCH_NO_LAUNCH_ATTRIBUTE(name, flag, attribute, value, text)
