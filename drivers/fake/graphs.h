// A graph, its nodes, and the executable copy of it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "internal.h"

struct CUgraphNode_st {
  CUgraphNodeType type;
  std::vector<CUgraphNode> dependencies;
  bool is_enabled = true;
  // For a kernel: its launch configuration, and the bytes of each parameter.
  CUlaunchConfig config = {};
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  std::vector<CUlaunchAttribute> attributes;
  std::vector<std::string> bytes;
  std::vector<void*> pointers;
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUDA_HOST_NODE_PARAMS host = {};
  CUgraph child = nullptr;
  CUevent event = nullptr;
  CUDA_CONDITIONAL_NODE_PARAMS conditional = {};
  std::vector<CUgraph> bodies;  // of a condition
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  std::map<CUgraphNode, std::unique_ptr<CUgraphNode_st>> nodes;  // by the node of its graph
  std::vector<CUgraphNode> order;
  CUcontext context = nullptr;
};

namespace fake {

using Lock = std::lock_guard<std::recursive_mutex>;

CUcontext ContextOfNode(const CUDA_KERNEL_NODE_PARAMS& params);
CUresult SetKernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params);
bool Order(CUgraph graph, std::vector<CUgraphNode>* order);
std::unique_ptr<CUgraphNode_st> CopyOf(const CUgraphNode_st& node);
void DestroyGraphsOf(const CUgraphNode_st& node);
// The value that a condition has when a launch begins, because no kernel of this driver sets it.
unsigned DefaultOf(CUgraphConditionalHandle condition);

}  // namespace fake
