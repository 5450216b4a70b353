#!/usr/bin/env bash
# Build the wheel, test it and measure it on a machine with a GPU and no network.
set -uo pipefail

usage() {
    cat <<'USAGE'
usage: tools/gpu_check.sh [--tests] [--sanitize] [--bench NAME]... [--third-party FOLDER [--suite NAME]...] [--select EXPRESSION] [--marker EXPRESSION] [PATH...]

  --tests         the tests, those that need a GPU too (the default, with no other part named)
  --sanitize      the tests of the launch path under compute-sanitizer's memcheck
  --bench NAME    benchmarks/NAME.py; may be repeated; 'NAME --option' gives it an option
  --third-party FOLDER
                  test suites of others, by Triton and then natively: the folder has them, and
                  suites.json (tools/third_party/compare_suites.py)
  --suite NAME    only this one of them; may be repeated
  --select EXPR   only the tests that match pytest's -k EXPR
  --marker EXPR   only the tests that match pytest's -m EXPR: gpu, for what needs one
  PATH...         only these tests (default: tests; tests/launch/test_gpu_launch.py
                  for --sanitize)

Wheels in .whl/ are installed first: put there only what the machine lacks. Results and one log
are written to $OUT (default: build/gpu), and a table of the parts is printed last. Each part is
stopped after $PART_SECONDS (default: 420).
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
root=$PWD
out=${OUT:-$root/build/gpu}
scratch=$root/build/gpu/scratch # stays on the machine; $out is what comes back
site=$scratch/site
seconds=${PART_SECONDS:-420}
python=${PYTHON:-python3}

third= suites=() parts=() benches=() paths=() select=() marker=()
while (($#)); do
    case $1 in
        --tests) parts+=(tests) ;;
        --sanitize) parts+=(sanitize) ;;
        --bench) benches+=("${2:?--bench needs a name}") && shift ;;
        --third-party) third=$(cd "${2:?--third-party needs a folder}" && pwd) && shift ;;
        --suite) suites+=(--only "${2:?--suite needs a name}") && shift ;;
        --marker) marker=(-m "${2:?--marker needs an expression}") && shift ;;
        --select) select=(-k "${2:?--select needs an expression}") && shift ;;
        -h | --help) usage && exit 0 ;;
        -*) usage >&2 && exit 2 ;;
        *) paths+=("$PWD/$1") ;;
    esac
    shift
done
((${#parts[@]} + ${#benches[@]})) || [[ -n $third ]] || parts=(tests)
mkdir -p "$out" "$scratch"
log=$out/gpu_check.log
table=() failed=0
# part NAME COMMAND...: run it in a folder without the sources, log it, note how it went. What takes
# too long is interrupted, not ended: pytest then says what has failed so far.
part() {
    local name=$1 start=$SECONDS code
    shift
    echo "==> $name: $*" | tee -a "$log"
    (cd "$scratch" && timeout --signal=INT --kill-after=20 "$seconds" "$@") 2>&1 |
        tee "$scratch/$name.log" | tee -a "$log"
    code=${PIPESTATUS[0]}
    local said
    said=$(grep -vE '^\s*$' "$scratch/$name.log" | tail -n 1 | cut -c1-90)
    table+=("$(printf '%-22s %5ds  %-6s %s' "$name" $((SECONDS - start)) \
        "$([[ $code == 0 ]] && echo ok || echo "rc $code")" "$said")")
    [[ $code == 0 ]] || failed=1
    return "$code"
}

build() {
    rm -rf "$site" "$scratch/wheel"
    "$python" -m pip wheel -q --no-build-isolation --no-deps --no-index \
        -C "build-dir=$scratch/cmake" --wheel-dir "$scratch/wheel" "$root" || return
    "$python" -m pip install -q --no-deps --no-index --no-compile --target "$site" \
        "$scratch"/wheel/culaunch-*.whl || return
    if compgen -G "$root/.whl/*.whl" >/dev/null; then
        "$python" -m pip install -q --no-deps --no-index --no-compile --target "$site" \
            "$root"/.whl/*.whl || return
    fi
    echo "built $(basename "$scratch"/wheel/culaunch-*.whl) for $("$python" --version)"
}

export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
export PATH=$site/bin:$PATH:/usr/local/cuda/bin
export CULAUNCH_CACHE_DIR=$scratch/cache
# What this machine is for: none of these may be skipped.
export CULAUNCH_REQUIRE=${CULAUNCH_REQUIRE-gpu,torch,triton,cupy,jax}
# JAX would take most of the memory that the other frameworks' tests need.
export XLA_PYTHON_CLIENT_PREALLOCATE=false
pytest=("$python" -m pytest -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider -p no:benchmark)

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$log"
export -f build # for timeout, which runs commands and not functions
export root scratch site python
if part build bash -c build; then
    for name in "${parts[@]}"; do
        if [[ $name == tests ]]; then
            # CULAUNCH_TEST_INSTALLED: fail if the sources, not the wheel, would be tested.
            CULAUNCH_TEST_INSTALLED=1 part tests "${pytest[@]}" -n "${JOBS:-8}" \
                "${select[@]}" "${marker[@]}" "${paths[@]:-$root/tests}"
        else
            # --target-processes: the examples and some tests start processes of their own.
            CULAUNCH_SANITIZER=1 part sanitize compute-sanitizer --tool memcheck --target-processes all \
                --error-exitcode 86 --report-api-errors no "${pytest[@]}" -q -m gpu \
                "${select[@]}" "${paths[@]:-$root/tests/launch/test_gpu_launch.py}"
        fi
    done
    for bench in "${benches[@]}"; do
        read -ra words <<<"$bench"
        name=${words[0]}
        target=(--json "$out/$name.json")
        if grep -q '"--output"' "$root/benchmarks/$name.py"; then
            target=(--output "$out") # a chart, too
        fi
        part "bench-$name" "$python" "$root/benchmarks/$name.py" "${target[@]}" "${words[@]:1}"
    done
    if [[ -n $third ]]; then
        part third-party "$python" "$root/tools/third_party/compare_suites.py" "$third" \
            --output "$out/third_party" --seconds $((seconds - 15)) --jobs "${JOBS:-12}" \
            "${suites[@]}"
    fi
fi

echo
echo "part                    time  result last line"
printf '%s\n' "${table[@]}" | tee -a "$log"
exit "$failed"
