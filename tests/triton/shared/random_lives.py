"""Kernels with random lives: calls between which all changes that Triton would notice.

`python random_lives.py FOLDER triton|installed FIRST LAST` prints what comes of each step.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import random
import re
import sys

import own_driver
import torch
import triton
import triton.language as tl
from triton.runtime import JITFunction

SOURCE = os.path.join(os.path.dirname(__file__), "life_kernels.py")
TENSORS = [torch.arange(64.0), torch.arange(64.0)[1:], torch.arange(64, dtype=torch.int32),
           torch.arange(64)[4:]]  # fmt: skip
STEPS = 40
HOOKS = triton.knobs.runtime.launch_enter_hook
# How often each step is drawn.
OFTEN = {
    "call": 30, "global_in_place": 2, "global_replaced": 1, "forget": 2, "forget_all": 1, "hook": 3,
    "pre_run_hook": 2, "configs": 3, "constant": 2, "debug": 1, "warmup": 2, "class_run": 2,
    "own_run": 1, "copy": 1, "heuristic": 2, "nested": 2,
}  # fmt: skip


class Life:
    """The kernels of one module, and what is done to them."""

    def __init__(self, seed, nested):
        self.draw = random.Random(seed)
        self._nested = nested
        self.log = []
        # Imported again, so nothing of the earlier life remains.
        spec = importlib.util.spec_from_file_location("life_kernels", SOURCE)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.kernel = self.module.kernel
        self.kernels = [self.kernel]
        if decorated := self._decorated(self.draw.randrange(4)):
            self.kernels.append(decorated)
        self._run_before = None

    def _decorated(self, kind):
        configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32}, num_warps=2)]
        measured = random.Random(kind)

        def measure(call, quantiles):
            call()
            return [measured.random()] * len(quantiles)

        tuner = triton.autotune(
            configs, key=["n"], do_bench=measure,
            pre_hook=lambda arguments, reset_only=False: self.log.append("before"),
            post_hook=lambda arguments, exception: self.log.append("after"),
        )  # fmt: skip
        heuristics = triton.heuristics({"MODE": lambda args: int(args["n"] % 2 == 0)})
        return [
            None, tuner(self.kernel), heuristics(tuner(self.kernel)),
            tuner(heuristics(self.kernel)),
        ][kind]  # fmt: skip

    def run(self):
        """Yield what comes of each step."""
        names, weights = zip(*OFTEN.items(), strict=True)
        try:
            for number in range(STEPS):
                name = self.draw.choices(names, weights)[0]
                try:
                    found = getattr(self, name)()
                except Exception as error:  # noqa: BLE001
                    found = f"{type(error).__name__}: {error}"
                yield f"{number} {name} {scrubbed(found)} {self.log} {self.chosen()}"
                self.log.clear()
        finally:
            HOOKS.calls.clear()
            if self._run_before is not None:
                JITFunction.run = self._run_before

    def chosen(self):
        """Return what the decorators have noted."""
        return [
            (str(one.best_config), len(one.cache))
            for one in self.kernels if hasattr(one, "best_config")
        ]  # fmt: skip

    # ---- steps

    def call(self):
        kernel, *rest = self._arguments()
        out, args, kwargs, grid = rest
        if self.draw.random() < 0.8:
            made = kernel[grid](*args, **kwargs)
        else:
            made = kernel.run(*args, grid=grid, warmup=False, **kwargs)
        return out.double().sum().item(), described(made)

    def warmup(self):
        kernel, _, args, kwargs, grid = self._arguments()
        made = kernel.warmup(*args, grid=grid, **kwargs)
        return [described(one) for one in (made if isinstance(made, list) else [made])]

    def _arguments(self):
        draw = self.draw
        kernel, x = draw.choice(self.kernels), draw.choice(TENSORS)
        out = torch.zeros(64, dtype=x.dtype)
        args = [x, out, draw.choice([1, 5, 16, 33, 60]), draw.choice([0, 1, 16, True, "text"])]
        kwargs = {"BLOCK": draw.choice([16, 32])} if isinstance(kernel, JITFunction) else {}
        if draw.random() < 0.3:
            kwargs["F"] = draw.choice([self.module.more, None])
        if draw.random() < 0.1:
            kwargs["num_warps"] = 2
        if draw.random() < 0.05:
            kwargs["nothing"] = 1
        if draw.random() < 0.05:
            args = args[:1]
        lazily = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
        return kernel, out, args, kwargs, draw.choice([(4,), lazily, [2], (0,), (2, 1), 2])

    def global_in_place(self):
        self.module.FACTOR.value = self.draw.choice([2, 3])

    def global_replaced(self):
        self.module.FACTOR = tl.constexpr(self.draw.choice([2, 3]))

    def forget(self):
        self.kernel.device_caches.clear()

    def forget_all(self):
        for one in (self.kernel, self.module.times):
            one.hash, one.used_global_vals = None, {}
        self.kernel.device_caches.clear()

    def hook(self):
        if HOOKS.calls:
            HOOKS.calls.clear()
        else:
            HOOKS.add(lambda metadata: self.log.append(metadata.get()["name"]))

    def pre_run_hook(self):
        if self.kernel.pre_run_hooks:
            self.kernel.pre_run_hooks.clear()
        else:
            self.kernel.add_pre_run_hook(
                lambda *args, **kwargs: self.log.append((len(args), sorted(kwargs)))
            )

    def configs(self):
        for one in self.kernels:
            if hasattr(one, "configs"):
                change = self.draw.randrange(3)
                if change == 0:
                    one.cache.clear()
                elif change == 1:
                    one.configs[0].kwargs["BLOCK"] = self.draw.choice([16, 64])
                else:
                    one.configs = one.configs[:1]

    def constant(self):
        source = self.module.more.src
        new = source.replace("1", "7") if "1" in source else source.replace("7", "1")
        self.module.more._unsafe_update_src(new)

    def debug(self):
        self.kernel.debug = self.draw.choice([True, False, None])

    def class_run(self):
        if self._run_before is not None:
            JITFunction.run, self._run_before = self._run_before, None
            return
        before = self._run_before = JITFunction.run

        def run(kernel, *args, **kwargs):
            self.log.append("of the class")
            return before(kernel, *args, **kwargs)

        JITFunction.run = run

    def own_run(self):
        if "run" in vars(self.kernel):
            del self.kernel.run
        else:
            before = self.kernel.run

            def run(*args, **kwargs):
                self.log.append("of the kernel")
                return before(*args, **kwargs)

            self.kernel.run = run

    def copy(self):
        self.kernels.append(copy.copy(self.draw.choice(self.kernels)))

    def heuristic(self):
        for one in self.kernels:
            if hasattr(one, "values"):
                one.values = {**one.values, "MODE": always(self.draw.choice([0, 1]))}

    def nested(self):
        self._nested()


def always(value):
    """Make a heuristic that says one thing."""
    return lambda arguments: value


def described(kernel):
    """Say what a kernel was compiled for."""
    if kernel is None:
        return None
    source = kernel.src
    return list(source.signature.values()), source.constants, kernel.metadata.num_warps


def scrubbed(value):
    """Leave out what differs from process to process."""
    return re.sub(r"0x[0-9a-f]+", "..", str(value)).splitlines()


def main(folder, how, first, last):
    """Print what comes of the lives."""
    os.environ["CULAUNCH_DRIVER"] = "emulator"
    own_driver.build(folder)
    nested = bool
    if how == "installed":
        from culaunch.triton import install

        install()

        def nested():
            with install(exclude="nothing"):
                pass

    triton.runtime.driver.set_active(own_driver.OwnDriver())
    for seed in range(int(first), int(last)):
        for line in Life(seed, nested).run():
            print(seed, line)


if __name__ == "__main__":
    main(*sys.argv[1:])
