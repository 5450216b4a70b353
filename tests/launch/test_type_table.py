"""The table of Python types that culaunch remembers, and that it forgets them."""

from pathlib import Path

from runs import run_to_the_end

HERE = Path(__file__).parent


def test_types_made_at_run_time_do_not_fill_memory():
    # In a process of its own: the table of types is the process's, and this fills it.
    code = f"""
        import ctypes, gc, sys, weakref
        sys.path.insert(0, {str(HERE)!r})
        from recording import the_recorder
        driver = the_recorder()
        kernel = driver.kernel(4)
        references = []
        for i in range(3000):
            kind = type(f"S{{i}}", (ctypes.Structure,), {{"_fields_": [("x", ctypes.c_int)]}})
            kernel[1, 1](kind(i))
            assert driver.last.arguments[0] == i.to_bytes(4, "little")
            references.append(weakref.ref(kind))
        del kind
        gc.collect()
        kept = sum(reference() is not None for reference in references)
        assert 0 < kept <= 512, kept
        for value in (5, 2.5, ctypes.c_int(7)):
            kernel[1, 1](value)
        assert not driver.defects
        print("done")
    """
    run_to_the_end(code, CULAUNCH_DRIVER="/recorder")
