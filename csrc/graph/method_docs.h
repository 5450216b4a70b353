// The docstrings of the public methods of graphs and their nodes.
#pragma once

namespace graph {

inline constexpr const char* kLaunchDoc = R"(launch($self, stream=None)
--

Launch all nodes of the graph.

Parameters
----------
stream : Stream, int or stream of a framework, optional
    The stream to launch into. By default the current stream of the framework of the first array.

Raises
------
LaunchError
    If the driver refuses the launch, or a kernel's module is unloaded.
ValueError
    If no stream is given and the current stream of the arrays is not known.

Examples
--------
>>> graph.launch()  # doctest: +SKIP)";

inline constexpr const char* kUploadDoc = R"(upload($self, stream=None)
--

Move the graph to the device, so the first launch does not have to.

Parameters
----------
stream : Stream, int or stream of a framework, optional
    The same as for :meth:`launch`.

Raises
------
LaunchError
    If the driver refuses the graph.

Examples
--------
>>> graph.upload(stream)  # doctest: +SKIP)";

inline constexpr const char* kUpdateAllDoc = R"(update_all($self, rows, /)
--

Set other arguments of all nodes for the next launches. This is the cheapest update.

Parameters
----------
rows : sequence of tuple
    The arguments of each node, in the order of ``nodes``.

Raises
------
TypeError, ValueError, OverflowError
    If the number of rows is wrong, an argument is invalid, or a call launches other kernels with
    its arguments.

Examples
--------
>>> graph.update_all([(y, x, 2.0, 256), (z, y, 3.0, 256)])  # doctest: +SKIP)";

inline constexpr const char* kInstantiateDoc = R"(instantiate($self)
--

Create the executable graph now. Otherwise the first launch or upload does.

Raises
------
LaunchError
    If the driver refuses the graph.

Examples
--------
>>> graph.instantiate()  # doctest: +SKIP)";

inline constexpr const char* kNodeUpdateDoc = R"(update($self, /, *args, **keywords)
--

Make the call of the node again, and let its launches replace those of the node.

Parameters
----------
*args, **keywords
    All arguments of the call.

Returns
-------
object
    The result of the call.

Raises
------
TypeError, ValueError, OverflowError
    If an argument is invalid, or the call launches other kernels with these arguments.

Examples
--------
>>> graph.nodes[0].update(y, x, 4.0, 256)  # doctest: +SKIP)";

}  // namespace graph
