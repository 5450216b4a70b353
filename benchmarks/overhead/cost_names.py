"""Names of the costs of one more argument, and of the parts of a launch.

They are stored by their keys in the report. The tables of the documentation use them.
"""

COST_NAMES = {
    "tensor": "culaunch, each additional torch tensor",
    "int": "culaunch, each additional int",
    "float": "culaunch, each additional float",
    "c_tensor": "C loop, each additional pointer",
    "c_int": "C loop, each additional int",
    "c_float": "C loop, each additional float",
    "exchange": "torch's exchange function, for a tensor",
    "work_stream": "torch's current_work_stream",
    "gil": "releasing and acquiring the GIL",
}
