// Attributes of a launch that LaunchConfig has no field for, and what cannot be right.
#include "check.h"

using culaunch::Dim3;
using culaunch::LaunchConfig;

static void AnyAttributeGoesToTheDriver(const culaunch::Kernel& kernel) {
  CUlaunchAttribute more[3] = {};
  more[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  more[0].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  more[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
  more[1].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  more[2].id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  more[2].value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  LaunchConfig config(8, 64);
  config.attributes = more;
  ClearRecord();
  kernel(config);
  CHECK(Recorded("stream=default spread_clusters=1 attribute10=01000000 attribute13=01000000"));
  // The driver's writes arrive in the caller's memory.
  CHECK(more[2].value.deviceUpdatableKernelNode.devNode != nullptr);

  // With fields as well; by Launch, too.
  config.cluster = 2;
  config.programmatic = true;
  config.attributes = {more, 1};
  ClearRecord();
  CHECK(kernel.Launch(nullptr, config) == CUDA_SUCCESS);
  CHECK(Recorded("stream=default cluster=2,1,1 programmatic=1 spread_clusters=1"));
}

static void ACaseThatCannotBeRightIsNotTheDriversToFind(const culaunch::Kernel& kernel) {
  ClearRecord();
  LaunchConfig config(Dim3(9, 4), 64);
  config.cluster = Dim3(2, 2);
  CHECK(kernel.Launch(nullptr, config) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS(kernel(config), kCall,
               "grid, in blocks, must be a multiple of cluster (got grid (9, 4, 1), cluster "
               "(2, 2, 1))");
  config.cluster = Dim3(3, 0);
  CHECK_THROWS(kernel(config), kCall, "cluster must be at least 1 in every dimension");
  config.cluster = Dim3(3, 1);
  config.preferred_cluster = Dim3(6, 1);
  CHECK_THROWS(kernel(config), kCall, "must be a multiple of preferred_cluster");
  config.cluster = Dim3(0, 0, 0);
  config.preferred_cluster = Dim3(3, 1);
  CHECK_THROWS(kernel(config), kCall, "preferred_cluster needs cluster");
  config.cluster = Dim3(3, 1);
  config.preferred_cluster = Dim3(0, 1);
  CHECK_THROWS(kernel(config), kCall, "preferred_cluster must be at least 1 in every dimension");
  CHECK(CallsOf("cuLaunchKernelEx") == 0);
}

static void AnAttributeIsSaidOnce(const culaunch::Kernel& kernel) {
  CUlaunchAttribute priority[2] = {};
  priority[0].id = priority[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  LaunchConfig config(1, 1);
  config.attributes = priority;
  ClearRecord();
  CHECK_THROWS(kernel(config), kCall, "attributes has attribute 8 (CUlaunchAttributeID) twice");
  config.attributes = {priority, 1};
  config.has_priority = true;
  CHECK_THROWS(kernel(config), kCall, "set it once");
  CHECK(CallsOf("cuLaunchKernelEx") == 0);
  config.has_priority = false;
  kernel(config);
  CHECK(Recorded("priority=0"));
  config.attributes = {priority, 28};
  CHECK_THROWS(kernel(config), kCall, "attributes must be at most 27 (got 28)");
}

int main() {
  const culaunch::Module module(Ptx().data(), Ptx().size());
  const culaunch::Kernel kernel = module["empty"];
  AnyAttributeGoesToTheDriver(kernel);
  ACaseThatCannotBeRightIsNotTheDriversToFind(kernel);
  AnAttributeIsSaidOnce(kernel);
}
