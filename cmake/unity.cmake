# Unity builds: the sources of one directory are compiled together, a few at a
# time, so that headers are read and their templates made once a group. A new
# file moves only the groups of its own directory, whose files therefore give
# distinct names to what lies in their anonymous namespaces.
option(HR_UNITY "Compile the sources of a directory together" ON)
set(HR_UNITY_GROUP 8 CACHE STRING "How many sources are compiled together")

# Sets `out` to the files that include `sources` in groups, or to `sources`
# themselves where HR_UNITY is off. The sources lie below `root`, which is among
# the include directories. HR_UNITY_PRIVATE lists names that generated sources
# share, for hr_unity to keep apart.
function(hr_unity out root)
  if(NOT HR_UNITY)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units)
  foreach(source ${ARGN})
    file(RELATIVE_PATH source ${root} ${source})
    get_filename_component(directory ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${directory}" key)
    list(APPEND sources_${key} ${source})
    list(LENGTH sources_${key} count)
    math(EXPR part "(${count} - 1) / ${HR_UNITY_GROUP}")
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity/${directory}_${part}.cc)
    string(MAKE_C_IDENTIFIER ${source} file)
    foreach(name ${HR_UNITY_PRIVATE})
      string(APPEND text_${unit} "#define ${name} ${name}_${file}\n")
    endforeach()
    string(APPEND text_${unit} "#include \"${source}\"\n")
    foreach(name ${HR_UNITY_PRIVATE})
      string(APPEND text_${unit} "#undef ${name}\n")
    endforeach()
    list(APPEND units ${unit})
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit ${units})
    # Left alone where nothing changed.
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text_${unit}}" @ONLY)
  endforeach()
  set(${out} ${units} PARENT_SCOPE)
endfunction()
