# Writes OUTPUT, a header with the commit that is built: COMMIT or, if that is empty, what git says about SOURCE. Each
# build runs this script, but the header changes only when the commit does.
cmake_minimum_required(VERSION 3.23)
set(commit "${COMMIT}")
if(commit STREQUAL "" AND EXISTS "${SOURCE}/.git") # a folder above may be another project's
    execute_process(COMMAND git --no-optional-locks describe --always --exclude=* --abbrev=40 --dirty=-modified
                    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit STREQUAL "")
    set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MATMULD_COMMIT \"@commit@\"\n" @ONLY)
