"""Names of the costs of one more argument, and of the parts of a launch.

They are stored by their keys in the report. The tables of the documentation use them.
"""

COST_NAMES = {
    "tensor": "culaunch, each further torch tensor",
    "int": "culaunch, each further int",
    "float": "culaunch, each further float",
    "c_tensor": "C loop, each further pointer",
    "c_int": "C loop, each further int",
    "c_float": "C loop, each further float",
    "exchange": "torch's exchange function, for a tensor",
    "work_stream": "torch's current_work_stream",
    "gil": "the GIL released and taken again",
}
