// The state of a _core.Graph and a _core.GraphNode.
#pragma once

#include <culaunch/graph.h>

#include "python/python.h"

namespace graph {

class Recording;

struct GraphObject {
  PyObject_HEAD PyObject* driver;  // owned
  culaunch::Graph* graph;          // owned, or of `owner`
  PyObject* owner;                 // owned: of a body, the graph that it is in; else null
  PyObject* nodes;                 // owned: a list of _core.GraphNode, in their order
  PyObject* like;        // owned: an array whose framework provides the stream; null: none
  Recording* recording;  // owned: the recording of a `with` block, or null
};

// One call, copy or other operation: consecutive driver nodes that are updated together.
struct NodeObject {
  PyObject_HEAD GraphObject* graph;  // owned
  PyObject* callable;                // owned; null: the node is another library's
  PyObject* args;                    // owned: a tuple
  PyObject* names;                   // owned: of the last arguments, or null
  PyObject* name;                    // owned: the user's, or None
  PyObject* kept;                    // owned: a list of the objects that the nodes need, or null
  size_t first;
  size_t count;
};

inline GraphObject* GraphOf(PyObject* object) { return reinterpret_cast<GraphObject*>(object); }
inline NodeObject* NodeOf(PyObject* object) { return reinterpret_cast<NodeObject*>(object); }

// A new node at the end of a graph's list; null with a Python error set. `args` is a tuple.
NodeObject* AddNode(GraphObject* graph, size_t first, size_t count, PyObject* callable,
                    PyObject* args, PyObject* names, PyObject* name);

// update_all(rows): repeat the calls of all nodes, with a tuple of arguments for each.
PyObject* UpdateAll(PyObject* graph, PyObject* rows);

// Work that is not a launch. It is added to the graph that this thread records, or it replaces a
// node.
PyObject* TakeCopy(PyObject* self, PyObject* args);
PyObject* TakeHost(PyObject* self, PyObject* args);
PyObject* TakeChild(PyObject* self, PyObject* args);
PyObject* TakeEmpty(PyObject* self, PyObject* args);
PyObject* TakeConditional(PyObject* self, PyObject* args);

// The capture of a stream.
PyObject* BeginCapture(PyObject* self, PyObject* args);
PyObject* EndCapture(PyObject* self, PyObject* args);

int AddNodeType(PyObject* module);
PyTypeObject* GraphType();
int AddGraphType(PyObject* module);

}  // namespace graph
