# The version comes from the header, its only source.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/culaunch/version.h" _culaunch_lines
     REGEX "define CULAUNCH_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX REPLACE "[^0-9;]" "" _culaunch_numbers "${_culaunch_lines}")
string(REPLACE ";" "." PACKAGE_VERSION "${_culaunch_numbers}")

# Before 1.0 a minor version may change the interface, as in semantic versioning.
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _culaunch_own "${PACKAGE_VERSION}")
  if(PACKAGE_FIND_VERSION_COUNT LESS 2
     OR _culaunch_own VERSION_EQUAL "${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}")
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
