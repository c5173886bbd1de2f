# Installs ${BUILD} into a folder of its own, builds ${EXAMPLE} against that
# alone and runs it: linked shared and static, it must print the same; further
# programs must end well.
set(prefix ${BUILD}/outside/prefix)
set(build ${BUILD}/outside/build)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(result)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
file(REMOVE_RECURSE ${prefix} ${build})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component library)
run(${CMAKE_COMMAND} -G Ninja -S ${EXAMPLE} -B ${build}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${build})
run(${build}/outside_shared)
set(shared "${output}")
run(${build}/outside_static)
if(NOT shared STREQUAL output)
  message(FATAL_ERROR "shared printed:\n${shared}\nstatic:\n${output}")
endif()
message("${output}")
# The program finds the library beside itself.
run(${prefix}/bin/headrace --version)
message("${output}")
foreach(program two_inputs gan characters)
  run(${build}/${program})
  message("${program}:\n${output}")
endforeach()
if(EXISTS ${build}/served)
  file(REMOVE_RECURSE ${BUILD}/outside/models)
  file(COPY ${EXAMPLE}/../../tests/golden/saved_models/plain/
       DESTINATION ${BUILD}/outside/models/1)
  # (A port that nobody has: the server takes no other port by itself.)
  execute_process(COMMAND python3 -c
      "import socket; s = socket.create_server(('', 0)); print(s.getsockname()[1])"
      OUTPUT_VARIABLE port OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  run(${build}/served ${BUILD}/outside/models ${port})
  message("served:\n${output}")
endif()
