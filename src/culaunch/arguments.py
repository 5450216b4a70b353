"""Special arguments of kernels: tensor maps, textures, surfaces, memory of another device."""

from culaunch._launch.peers import peer_array
from culaunch._launch.tensor_map import TensorMap
from culaunch._launch.texture import Surface, Texture

__all__ = [
    "Surface",
    "TensorMap",
    "Texture",
    "peer_array",
]
