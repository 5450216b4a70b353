"""Special arguments of kernels: tensor maps, textures, surfaces, memory of another device."""

from culaunch._launch.arguments.tensor_map import TensorMap
from culaunch._launch.arguments.texture import Surface, Texture
from culaunch._launch.arrays.peers import peer_array

__all__ = [
    "Surface",
    "TensorMap",
    "Texture",
    "peer_array",
]
