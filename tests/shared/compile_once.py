"""A compiler launcher for CMake: compile each file of the package once per run and set of flags.

Every outside project compiles the same files of the package, mostly with the same flags. The
projects' own files are compiled each time. A program by itself, which imports little:
``python compile_once.py FOLDER_OF_OBJECTS FOLDER_OF_SOURCES COMPILER WORDS...``.
"""

import fcntl
import hashlib
import os
import subprocess
import sys

PLACES = ("-o", "-MF", "-MT")  # of results: they differ from project to project


def main(objects, sources, *command):
    source = command[command.index("-c") + 1] if "-c" in command else ""
    places = {name: command.index(name) for name in PLACES if name in command}
    if os.path.dirname(source) != sources or len(places) < len(PLACES):
        os.execvp(command[0], command)
    common = list(command)
    for place in places.values():
        common[place + 1] = ""
    # The order of these says nothing, and depends on how a project gives them.
    free = sorted({word for word in common if word.startswith(("-f", "-std="))})
    words = [*free, *(word for word in common if word not in free)]
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    folder = os.path.join(objects, key)
    os.makedirs(folder, exist_ok=True)
    kept = {"-o": f"{folder}/object.o", "-MF": f"{folder}/object.d", "-MT": "TARGET"}
    with open(f"{folder}/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(f"{folder}/done"):
            for name, place in places.items():
                common[place + 1] = kept[name]
            done = subprocess.run(common, check=False)
            if done.returncode != 0:
                return done.returncode
            open(f"{folder}/done", "w").close()
    wanted = {name: command[place + 1] for name, place in places.items()}
    with open(kept["-o"], "rb") as made, open(wanted["-o"], "wb") as result:
        result.write(made.read())
    with open(kept["-MF"]) as made, open(wanted["-MF"], "w") as result:
        result.write(made.read().replace("TARGET:", wanted["-MT"] + ":", 1))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
