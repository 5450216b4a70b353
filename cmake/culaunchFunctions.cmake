# Compile kernels and put them into targets. Included by culaunchConfig.cmake.

# culaunch_add_kernels(<target> NAME <name> SOURCES <a.cu>...
#                      ARCHITECTURES <80 90a 100f 90-virtual>... [FATBIN | CUBIN]
#                      [NAMES <expression>...] [INCLUDE_DIRECTORIES <dir>...] [OPTIONS <option>...]
#                      [DEPENDS <file>...])
#
# Compile the sources together to one image, embed it in <target> for CULAUNCH_EMBED_CUBIN(<name>),
# and link culaunch::culaunch. An architecture is native code; one with "-virtual" is PTX, for
# devices to come. Without ARCHITECTURES those of CMAKE_CUDA_ARCHITECTURES are taken. The result is
# a fatbin, or with CUBIN (one architecture) a cubin. It is made again when a source, a header that
# it includes, an option or the compiler changes.
function(culaunch_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FATBIN;CUBIN" "NAME"
                        "SOURCES;ARCHITECTURES;NAMES;INCLUDE_DIRECTORIES;OPTIONS;DEPENDS")
  _culaunch_check_call(culaunch_add_kernels "${target}" "${arg_NAME}")
  _culaunch_check_kinds("culaunch_add_kernels(${target})")
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "culaunch_add_kernels(${target}): SOURCES must name CUDA sources")
  endif()
  if(arg_CUBIN)
    set(kind CUBIN)
  else()
    set(kind FATBIN)
  endif()
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/culaunch/${target}")
  string(TOLOWER "${kind}" suffix)
  set(image "${directory}/${arg_NAME}.${suffix}")
  culaunch_generate_cubin("${image}" SOURCES ${arg_SOURCES} ARCHITECTURES ${arg_ARCHITECTURES}
                          ${kind} NAMES ${arg_NAMES}
                          INCLUDE_DIRECTORIES ${arg_INCLUDE_DIRECTORIES}
                          OPTIONS ${arg_OPTIONS} DEPENDS ${arg_DEPENDS})
  culaunch_embed_cubin("${target}" NAME "${arg_NAME}" CUBIN "${image}")
endfunction()

# culaunch_generate_cubin(<output> SOURCES <a.cu>... ARCHITECTURES <80 90a 90-virtual>...
#                         [FATBIN | CUBIN | PTX] [NAMES <expression>...]
#                         [INCLUDE_DIRECTORIES <dir>...] [OPTIONS <option>...] [DEPENDS <file>...])
#
# Add the command that compiles the sources, as one, to the file <output>. Each name expression
# ("scale<float>") is instantiated, and the image has a kernel of that name.
function(culaunch_generate_cubin output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FATBIN;CUBIN;PTX" ""
                        "SOURCES;ARCHITECTURES;NAMES;INCLUDE_DIRECTORIES;OPTIONS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "culaunch_generate_cubin: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  _culaunch_check_kinds("culaunch_generate_cubin(${output})")
  # A list may be passed as one quoted word: SOURCES "${sources}".
  foreach(list IN ITEMS SOURCES ARCHITECTURES INCLUDE_DIRECTORIES DEPENDS)
    string(REPLACE "\\;" ";" arg_${list} "${arg_${list}}")
  endforeach()
  get_filename_component(output "${output}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  if(NOT arg_ARCHITECTURES AND CMAKE_CUDA_ARCHITECTURES)
    set(arg_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
  endif()
  _culaunch_arch_names(archs "${arg_ARCHITECTURES}" "${arg_PTX}")
  list(LENGTH archs count)
  if(count EQUAL 0)
    message(FATAL_ERROR "culaunch: name what to compile ${output} for, for example "
                        "ARCHITECTURES 80 90a 100f, or set CMAKE_CUDA_ARCHITECTURES")
  elseif(count GREATER 1 AND (arg_CUBIN OR arg_PTX))
    message(FATAL_ERROR "culaunch: one cubin or PTX is for one architecture (got "
                        "${arg_ARCHITECTURES}): leave CUBIN and PTX out for a fatbin")
  endif()
  if(arg_CUBIN AND archs MATCHES "compute_")
    message(FATAL_ERROR "culaunch: a cubin has no PTX (got ${arg_ARCHITECTURES}): use FATBIN")
  endif()

  set(sources "")
  set(directories "")
  set(unity "")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    if(NOT EXISTS "${source}")
      get_source_file_property(generated "${source}" GENERATED)
      if(NOT generated)
        message(FATAL_ERROR "culaunch: the CUDA source ${source} does not exist")
      endif()
    endif()
    get_filename_component(directory "${source}" DIRECTORY)
    list(APPEND sources "${source}")
    list(APPEND directories "${directory}")
    string(APPEND unity "#include \"${source}\"\n")
  endforeach()
  foreach(directory IN LISTS arg_INCLUDE_DIRECTORIES)
    get_filename_component(directory "${directory}" ABSOLUTE)
    list(APPEND directories "${directory}")
  endforeach()
  list(REMOVE_DUPLICATES directories)
  list(LENGTH sources count)
  # nvcc instantiates what host code names: a function that nobody calls.
  set(named "")
  set(index 0)
  foreach(name IN LISTS arg_NAMES)
    list(APPEND named "--name=${name}")
    if(CULAUNCH_NVCC)
      string(APPEND unity "__attribute__((unused)) static const void* culaunch_use_${index}() "
                          "{ return (const void*)(${name}); }\n")
      math(EXPR index "${index} + 1")
    endif()
  endforeach()
  # One image is compiled from one text; several sources are that text together.
  set(source "${sources}")
  if(count GREATER 1 OR index GREATER 0)
    set(source "${output}.cu")
    file(CONFIGURE OUTPUT "${source}" CONTENT "${unity}" @ONLY)
  endif()

  if(CULAUNCH_NVCC)
    set(flags "")
    foreach(arch IN LISTS archs)
      string(REGEX REPLACE "^(sm|compute)_" "" number "${arch}")
      list(APPEND flags "-gencode=arch=compute_${number},code=${arch}")
    endforeach()
    if(arg_PTX)
      list(TRANSFORM archs REPLACE "^sm_" "compute_")
      set(flags "-arch=${archs}" -ptx)
    elseif(arg_CUBIN)
      set(flags "-arch=${archs}" -cubin)
    else()
      list(APPEND flags -fatbin)
    endif()
    foreach(directory IN LISTS directories)
      list(APPEND flags "-I${directory}")
    endforeach()
    # nvcc writes the name that it is given into the depfile as it is.
    string(REPLACE " " "\\ " escaped "${output}")
    set(command "${CULAUNCH_NVCC}" -std=c++17 ${flags} ${arg_OPTIONS} -MD -MF "${output}.d"
                -MT "${escaped}" -o "${output}" "${source}")
    # nvcc records neither names nor the types of parameters.
    set(flags "")
    foreach(directory IN LISTS directories)
      list(APPEND flags "--include-dir=${directory}")
    endforeach()
    foreach(option IN LISTS arg_OPTIONS)
      list(APPEND flags "--option=${option}")
    endforeach()
    foreach(text IN LISTS sources)
      list(APPEND flags "--text=${text}")
    endforeach()
    list(GET archs 0 arch)
    list(APPEND command COMMAND "${CULAUNCH_PYTHON}"
                "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/culaunch_tool.py" describe "${source}"
                "${output}" "--nvcc=${CULAUNCH_NVCC}" "--arch=${arch}" --option=-std=c++17
                ${flags} ${named})
    set(comment "with nvcc")
    set(compiler "${CULAUNCH_NVCC}")
  else()
    list(JOIN archs "," joined)
    set(flags "")
    foreach(directory IN LISTS directories)
      list(APPEND flags "--include-dir=${directory}")
    endforeach()
    foreach(option IN LISTS arg_OPTIONS)
      list(APPEND flags "--option=${option}")
    endforeach()
    set(command "${CULAUNCH_PYTHON}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/culaunch_tool.py" compile
                "${source}" "${output}" "--arch=${joined}" --option=-std=c++17 ${flags}
                ${named} "--depfile=${output}.d")
    set(comment "with NVRTC")
    set(compiler "")
  endif()
  get_filename_component(directory "${output}" DIRECTORY)
  file(MAKE_DIRECTORY "${directory}")
  get_filename_component(name "${output}" NAME)
  list(JOIN archs ", " readable)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${command}
    DEPENDS "${source}" ${sources} ${arg_DEPENDS} ${compiler}
    DEPFILE "${output}.d"
    COMMENT "Compiling ${name} for ${readable} ${comment}"
    VERBATIM)
endfunction()

# culaunch_embed_cubin(<target> NAME <name> CUBIN <file> [SYMBOL_STYLE culaunch | tvm-ffi])
#
# Put an image (cubin, fatbin or PTX) into <target> for CULAUNCH_EMBED_CUBIN(<name>), and link
# culaunch::culaunch. Its symbols are hidden: shared libraries and programs may use one name each.
# <file> is what culaunch_generate_cubin or another command makes in the build directory by that
# name, else a file of the source directory; it may be a generator expression that gives one file.
function(culaunch_embed_cubin target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;CUBIN;SYMBOL_STYLE" "")
  _culaunch_check_call(culaunch_embed_cubin "${target}" "${arg_NAME}")
  if(NOT arg_CUBIN)
    message(FATAL_ERROR "culaunch_embed_cubin(${target}): CUBIN must name an image file")
  endif()
  if(NOT arg_SYMBOL_STYLE)
    set(arg_SYMBOL_STYLE culaunch)
  endif()
  _culaunch_image_path(image "${arg_CUBIN}")
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/culaunch/${target}")
  set(object "${directory}/${arg_NAME}.o")
  file(MAKE_DIRECTORY "${directory}")
  set(tool "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/culaunch_tool.py")
  get_target_property(type "${target}" TYPE)
  if(type STREQUAL OBJECT_LIBRARY)
    # It hands on only what it compiles itself, so the image is made part of a source.
    set(object "${directory}/${arg_NAME}.image.cpp")
    set(words embed-source "${directory}/${arg_NAME}.image")
  else()
    _culaunch_machine(machine)
    set(words embed "--machine=${machine}")
  endif()
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${CULAUNCH_PYTHON}" "${tool}" ${words} "${image}" "${object}" "${arg_NAME}"
            "--symbol-style=${arg_SYMBOL_STYLE}"
    DEPENDS "${image}" "${tool}"
    COMMENT "Embedding ${arg_NAME} in ${target}"
    COMMAND_EXPAND_LISTS VERBATIM)
  # The command belongs to this directory; the target may belong to another one.
  add_custom_target("${target}_culaunch_${arg_NAME}" DEPENDS "${object}")
  add_dependencies("${target}" "${target}_culaunch_${arg_NAME}")
  if(type STREQUAL OBJECT_LIBRARY)
    # Link-time optimisation sees no symbols in assembler.
    set_source_files_properties(
      "${object}" TARGET_DIRECTORY "${target}"
      PROPERTIES GENERATED TRUE SKIP_UNITY_BUILD_INCLUSION TRUE SKIP_PRECOMPILE_HEADERS TRUE
                 COMPILE_OPTIONS "-fno-lto")
  else()
    set_source_files_properties("${object}" TARGET_DIRECTORY "${target}"
                                PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endif()
  target_sources("${target}" PRIVATE "${object}")
  _culaunch_link("${target}")
endfunction()

# culaunch_add_headers(<target> NAME <bundle> FILES <file>... [BASE <dir>])
#
# Make device headers part of the target, for CULAUNCH_EMBED_HEADERS(<bundle>) and culaunch::Jit.
# #include finds them by their paths below BASE, by default the source directory.
function(culaunch_add_headers target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;BASE" "FILES")
  _culaunch_check_call(culaunch_add_headers "${target}" "${arg_NAME}")
  if(NOT arg_FILES)
    message(FATAL_ERROR "culaunch_add_headers(${target}): FILES must name at least one header")
  endif()
  if(NOT arg_BASE)
    set(arg_BASE "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  get_filename_component(base "${arg_BASE}" ABSOLUTE)
  set(files "")
  foreach(file IN LISTS arg_FILES)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND files "${file}")
  endforeach()
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/culaunch/${target}")
  set(source "${directory}/${arg_NAME}.headers.cpp")
  file(MAKE_DIRECTORY "${directory}")
  set(tool "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/culaunch_tool.py")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CULAUNCH_PYTHON}" "${tool}" embed-headers "${source}" "${arg_NAME}" "${base}"
            ${files}
    DEPENDS ${files} "${tool}"
    COMMENT "Embedding the headers ${arg_NAME} in ${target}"
    VERBATIM)
  # The command belongs to this directory; the target may belong to another one.
  add_custom_target("${target}_culaunch_${arg_NAME}" DEPENDS "${source}")
  add_dependencies("${target}" "${target}_culaunch_${arg_NAME}")
  set_source_files_properties(
    "${source}" TARGET_DIRECTORY "${target}"
    PROPERTIES GENERATED TRUE SKIP_UNITY_BUILD_INCLUSION TRUE SKIP_PRECOMPILE_HEADERS TRUE)
  target_sources("${target}" PRIVATE "${source}")
  _culaunch_link("${target}")
endfunction()

# Let a target use the header. A program that links an archive or the objects of an object library
# needs dlopen, and nothing else from culaunch: they contain the functions that the header only
# declares.
function(_culaunch_link target)
  # Not target_link_libraries: it must be called with keywords always or never, as the user did.
  set_property(TARGET "${target}" APPEND PROPERTY LINK_LIBRARIES culaunch::culaunch)
  get_target_property(type "${target}" TYPE)
  get_target_property(is_done "${target}" CULAUNCH_IS_LINKED)
  if(is_done)
    return()
  endif()
  set_property(TARGET "${target}" PROPERTY CULAUNCH_IS_LINKED TRUE)
  if(type STREQUAL STATIC_LIBRARY)
    if(TARGET culaunch_launch)
      target_sources("${target}" PRIVATE "$<TARGET_OBJECTS:culaunch_launch>")
    endif()
    if(CMAKE_DL_LIBS)
      set_property(TARGET "${target}" APPEND PROPERTY INTERFACE_LINK_LIBRARIES
                                                      "$<LINK_ONLY:${CMAKE_DL_LIBS}>")
    endif()
  elseif(type STREQUAL OBJECT_LIBRARY AND TARGET culaunch_launch)
    set(source "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/culaunch.cpp")
    set_source_files_properties(
      "${source}" TARGET_DIRECTORY "${target}"
      PROPERTIES SKIP_UNITY_BUILD_INCLUSION TRUE SKIP_PRECOMPILE_HEADERS TRUE
                 COMPILE_OPTIONS -fexceptions)
    target_sources("${target}" PRIVATE "${source}")
  endif()
endfunction()

# The image that CUBIN names: made by a command of this directory, or there already.
function(_culaunch_image_path result name)
  if(name MATCHES "\\$<")
    set(${result} "${name}" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(made "${name}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  get_filename_component(given "${name}" ABSOLUTE)
  get_source_file_property(is_made "${made}" GENERATED)
  if(is_made)
    set(given "${made}")
  endif()
  set(${result} "${given}" PARENT_SCOPE)
endfunction()

# The processor that objects are for: the compiler knows, whatever CMAKE_SYSTEM_PROCESSOR says.
function(_culaunch_machine result)
  if(NOT CULAUNCH_MACHINE)
    set(found "")
    if(CMAKE_CXX_COMPILER)
      set(words ${CMAKE_CXX_COMPILER_ARG1})
      separate_arguments(words UNIX_COMMAND "${words}")
      if(CMAKE_CXX_COMPILER_TARGET)
        list(APPEND words "--target=${CMAKE_CXX_COMPILER_TARGET}")
      endif()
      execute_process(COMMAND "${CMAKE_CXX_COMPILER}" ${words} -dumpmachine
                      OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      string(REGEX REPLACE "-.*" "" found "${found}")
    endif()
    if(NOT found)
      set(found "${CMAKE_SYSTEM_PROCESSOR}")
    endif()
    set(CULAUNCH_MACHINE "${found}" CACHE STRING "The processor that images are embedded for")
  endif()
  if(NOT CULAUNCH_MACHINE MATCHES "^(x86_64|x86-64|amd64|AMD64|aarch64|arm64|ARM64)$")
    message(FATAL_ERROR "culaunch writes objects for x86_64 and aarch64, and the C++ compiler is for "
                        "\"${CULAUNCH_MACHINE}\": set CULAUNCH_MACHINE if that is not so, or embed "
                        "the image in an OBJECT library, whose compiler writes the object")
  endif()
  set(${result} "${CULAUNCH_MACHINE}" PARENT_SCOPE)
endfunction()

# "80;90a;90-virtual" -> "sm_80;sm_90a;compute_90"
function(_culaunch_arch_names result architectures all_virtual)
  set(names "")
  set(expanded "")
  foreach(architecture IN LISTS architectures)
    # What CMake found out when the CUDA language was enabled.
    if(architecture MATCHES "^(native|all|all-major)$")
      string(TOUPPER "${architecture}" word)
      string(REPLACE "-" "_" word "${word}")
      if(NOT CMAKE_CUDA_ARCHITECTURES_${word})
        message(FATAL_ERROR "culaunch: what architectures \"${architecture}\" are, CMake's CUDA "
                            "language knows (enable_language(CUDA)), and it does not say; name them, "
                            "for example ARCHITECTURES 80 90a 100f")
      endif()
      set(architecture ${CMAKE_CUDA_ARCHITECTURES_${word}})
    endif()
    list(APPEND expanded ${architecture})
  endforeach()
  foreach(architecture IN LISTS expanded)
    if(NOT architecture MATCHES "^([0-9]+[af]?)(-real|-virtual)?$")
      message(FATAL_ERROR "culaunch: an architecture is a number as in 80, 90a, 100f, or "
                          "90-virtual for PTX (got \"${architecture}\")")
    endif()
    if(CMAKE_MATCH_2 STREQUAL "-virtual" OR all_virtual)
      list(APPEND names "compute_${CMAKE_MATCH_1}")
    else()
      list(APPEND names "sm_${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${result} "${names}" PARENT_SCOPE)
endfunction()

# One kind of image at most.
macro(_culaunch_check_kinds call)
  set(kinds "")
  foreach(kind IN ITEMS FATBIN CUBIN PTX)
    if(arg_${kind})
      list(APPEND kinds ${kind})
    endif()
  endforeach()
  list(LENGTH kinds count)
  if(count GREATER 1)
    list(JOIN kinds " and " kinds)
    message(FATAL_ERROR "${call}: ${kinds} exclude each other: give one")
  endif()
endmacro()

# What both verbs that take a target and a name check.
macro(_culaunch_check_call function target name)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${target}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "${function}: there is no target \"${target}\"; add it first")
  endif()
  if(NOT "${name}" MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "${function}(${target}): NAME must be a C identifier, as in "
                        "CULAUNCH_EMBED_CUBIN(my_kernels) (got \"${name}\")")
  endif()
endmacro()
