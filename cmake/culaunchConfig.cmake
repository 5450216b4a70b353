# find_package(culaunch): the launcher, and functions that compile and embed kernels.
#
#   culaunch::culaunch       target: the header, cuda.h, C++17, and a small static library with what
#                            a launch does not run, compiled once in a project
#   culaunch::headers        target: the header alone; each file compiles all that it uses
#   culaunch::jit            target: what <culaunch/jit.h> declares, compiled once in a project
#   culaunch::jit_per_thread the same for files with CUDA_API_PER_THREAD_DEFAULT_STREAM
#   culaunch_add_kernels     compile CUDA sources and embed them in a target
#   culaunch_generate_cubin  compile only
#   culaunch_embed_cubin     embed only
#   culaunch_add_headers     embed device headers, for culaunch::Jit
#
# Variables to set before, where the defaults do not fit:
#   CULAUNCH_CUDA_INCLUDE_DIR  the directory with cuda.h
#   CULAUNCH_NVCC              nvcc; "OFF" to compile with NVRTC (culaunch.compile) even so
#   CULAUNCH_PYTHON            the Python that has culaunch installed
#   CULAUNCH_MACHINE           x86_64 or aarch64, that images are embedded for
include_guard(GLOBAL)

if(CMAKE_VERSION VERSION_LESS 3.20)
  message(FATAL_ERROR "culaunch needs CMake 3.20 or newer (this is ${CMAKE_VERSION})")
endif()
# The same tree in a wheel (culaunch/cmake, culaunch/include) and in the sources.
get_filename_component(CULAUNCH_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../__init__.py")
  get_filename_component(_culaunch_packages "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
else()
  get_filename_component(_culaunch_packages "${CMAKE_CURRENT_LIST_DIR}/../src" ABSOLUTE)
endif()

# The interpreter of the environment that culaunch is installed in, else whichever there is.
find_program(CULAUNCH_PYTHON NAMES python3 python
             HINTS "${_culaunch_packages}/../../../bin" ENV VIRTUAL_ENV PATH_SUFFIXES bin
             DOC "The Python that has culaunch installed" NO_CMAKE_FIND_ROOT_PATH)

if(CMAKE_CUDA_COMPILER AND NOT CULAUNCH_NVCC)
  set(CULAUNCH_NVCC "${CMAKE_CUDA_COMPILER}")
endif()
find_program(CULAUNCH_NVCC nvcc
             HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin
             DOC "nvcc, or OFF to compile with NVRTC" NO_CMAKE_FIND_ROOT_PATH)
if(CULAUNCH_NVCC)
  get_filename_component(_culaunch_nvcc "${CULAUNCH_NVCC}" REALPATH)
  get_filename_component(_culaunch_nvcc_root "${_culaunch_nvcc}/../.." ABSOLUTE)
endif()

find_path(CULAUNCH_CUDA_INCLUDE_DIR cuda.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} "${_culaunch_packages}/nvidia/cu13/include"
                "${_culaunch_packages}/nvidia/cuda_runtime/include" ENV CUDA_HOME ENV CUDA_PATH
                "${_culaunch_nvcc_root}" /usr/local/cuda
          PATH_SUFFIXES include DOC "The directory with cuda.h" NO_CMAKE_FIND_ROOT_PATH)
# A culaunch in a source tree, or in another environment: the Python knows its packages.
if(NOT CULAUNCH_CUDA_INCLUDE_DIR AND CULAUNCH_PYTHON)
  execute_process(
    COMMAND "${CULAUNCH_PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/culaunch_tool.py" cuda-include-dir
    OUTPUT_VARIABLE _culaunch_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_culaunch_found)
    set(CULAUNCH_CUDA_INCLUDE_DIR "${_culaunch_found}" CACHE PATH "The directory with cuda.h" FORCE)
  endif()
endif()

set(_culaunch_missing "")
if(NOT CULAUNCH_CUDA_INCLUDE_DIR)
  string(APPEND _culaunch_missing "\n  cuda.h: pip install nvidia-cuda-runtime, or set "
                                  "CULAUNCH_CUDA_INCLUDE_DIR")
endif()
if(NOT CULAUNCH_PYTHON)
  string(APPEND _culaunch_missing "\n  Python 3.10 or newer: set CULAUNCH_PYTHON")
endif()
if(_culaunch_missing)
  set(culaunch_FOUND FALSE)
  set(culaunch_NOT_FOUND_MESSAGE "culaunch needs what was not found:${_culaunch_missing}")
  return()
endif()

if(NOT TARGET culaunch::headers)
  add_library(culaunch::headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(culaunch::headers SYSTEM INTERFACE "${CULAUNCH_INCLUDE_DIR}"
                                                                "${CULAUNCH_CUDA_INCLUDE_DIR}")
  target_compile_features(culaunch::headers INTERFACE cxx_std_17)
  target_link_libraries(culaunch::headers INTERFACE ${CMAKE_DL_LIBS})
endif()

# Libraries of the project, built where something links them, by its compiler and with its options.
get_property(_culaunch_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("CXX" IN_LIST _culaunch_languages AND NOT TARGET culaunch_launch)
  # Files with CUDA_API_PER_THREAD_DEFAULT_STREAM have names of their own: both kinds exist, and a
  # linker takes the ones that it needs.
  add_library(culaunch_launch STATIC EXCLUDE_FROM_ALL
              "${CMAKE_CURRENT_LIST_DIR}/culaunch.cpp"
              "${CMAKE_CURRENT_LIST_DIR}/culaunch_per_thread.cpp")
  target_link_libraries(culaunch_launch PUBLIC culaunch::headers)
  target_compile_definitions(culaunch_launch PUBLIC CULAUNCH_HEADER_ONLY=0)
  foreach(_culaunch_jit IN ITEMS culaunch_jit culaunch_jit_per_thread)
    add_library(${_culaunch_jit} STATIC EXCLUDE_FROM_ALL
                "${CMAKE_CURRENT_LIST_DIR}/culaunch_jit.cpp")
    target_link_libraries(${_culaunch_jit} PUBLIC culaunch::culaunch)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # This allows unloading a plugin that contains it.
      target_compile_options(${_culaunch_jit} PRIVATE -fno-gnu-unique)
    endif()
  endforeach()
  foreach(_culaunch_library IN ITEMS culaunch_launch culaunch_jit culaunch_jit_per_thread)
    # What throws inside is caught inside, for projects without exceptions.
    target_compile_options(${_culaunch_library} PRIVATE -fexceptions)
    set_target_properties(
      ${_culaunch_library}
      PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                 VISIBILITY_INLINES_HIDDEN ON CXX_CLANG_TIDY "" UNITY_BUILD OFF FOLDER culaunch)
  endforeach()
  target_compile_definitions(culaunch_jit_per_thread PUBLIC CUDA_API_PER_THREAD_DEFAULT_STREAM)
  add_library(culaunch::jit ALIAS culaunch_jit)
  add_library(culaunch::jit_per_thread ALIAS culaunch_jit_per_thread)
endif()
if(NOT TARGET culaunch::culaunch)
  add_library(culaunch::culaunch INTERFACE IMPORTED GLOBAL)
  if(TARGET culaunch_launch)
    target_link_libraries(culaunch::culaunch INTERFACE culaunch_launch)
  else()
    target_link_libraries(culaunch::culaunch INTERFACE culaunch::headers)
  endif()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/culaunchFunctions.cmake")
set(culaunch_FOUND TRUE)
