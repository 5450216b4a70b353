"""An extension of PyTorch with a kernel inside: no nvcc, and no CUDA runtime of its own."""

from pathlib import Path

from cuda.pathfinder import find_nvidia_header_directory
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

import culaunch as cl

IMAGE = Path("build") / "kernels.o"


class Build(BuildExtension):
    """Compile the kernel for every architecture first, and put it into an object."""

    def build_extensions(self):
        IMAGE.parent.mkdir(exist_ok=True)
        image = cl.compile(Path("scale.cu"), arch=["sm_80", "sm_90", "compute_80"])
        cl.cpp.embed(image, IMAGE, "kernels")
        super().build_extensions()


setup(
    packages=["scale_torch"],
    ext_modules=[
        CppExtension(
            "scale_torch._C",
            ["scale.cpp"],
            # cuda.h, of pip's nvidia-cuda-runtime or a toolkit.
            include_dirs=[str(cl.cpp.include_dir()), find_nvidia_header_directory("cudart")],
            extra_objects=[str(IMAGE)],
            extra_compile_args=["-fvisibility=hidden"],
        )
    ],
    cmdclass={"build_ext": Build},
)
