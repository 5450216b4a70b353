"""A plugin for Liger's own tests: a GPU that is the host, and no Transformers.

Its test helpers import Transformers and Tokenizers, which the tests of kernels do not use.
"""

import sys
import types

import torch
from cuda_on_host import CudaOnHost
from few_configurations import few_configurations

CudaOnHost().__enter__()  # for all of this process
few_configurations(1)
torch.set_num_threads(1)


class Absent(types.ModuleType):
    """A package whose names are empty classes."""

    __path__ = ()
    __version__ = "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for name in (
    "transformers", "transformers.tokenization_utils_base", "tokenizers", "tokenizers.models",
    "tokenizers.pre_tokenizers", "tokenizers.trainers",
):  # fmt: skip
    sys.modules[name] = Absent(name)
