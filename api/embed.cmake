# Functions that embed files in the program. The build also runs this file as a script. If GZIP is set, the script
# compresses INPUT. Otherwise it writes OUTPUT, a C file with the contents of the files that are listed in FILES.

# mm_embed(OUT TABLE ROOT FILE…): stores in the variable OUT the path of a generated C file, which defines
# `struct mm_embedded_files TABLE` with the contents of each FILE. FILEs are absolute paths. In the table, names are
# relative to ROOT. If ROOT is empty, the names have no folder.
function(mm_embed out table root)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${table}.c)
    set(script ${PROJECT_SOURCE_DIR}/api/embed.cmake)
    list(JOIN ARGN "\n" files)
    file(CONFIGURE OUTPUT ${table}.txt CONTENT "${files}" @ONLY) # too long for a command line
    add_custom_command(OUTPUT ${made}
        COMMAND ${CMAKE_COMMAND} -D TABLE=${table} -D ROOT=${root} -D FILES=${CMAKE_CURRENT_BINARY_DIR}/${table}.txt
                -D OUTPUT=${made} -P ${script}
        DEPENDS ${ARGN} ${CMAKE_CURRENT_BINARY_DIR}/${table}.txt ${script} VERBATIM)
    set(${out} ${made} PARENT_SCOPE)
endfunction()

# mm_embed_gzip(OUT FILE): compresses FILE during the build and stores the path of the result in the variable OUT.
function(mm_embed_gzip out file)
    get_filename_component(name ${file} NAME)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${name}.gz)
    add_custom_command(OUTPUT ${made}
        COMMAND ${CMAKE_COMMAND} -D INPUT=${file} -D GZIP=${made} -P ${PROJECT_SOURCE_DIR}/api/embed.cmake
        DEPENDS ${file} ${PROJECT_SOURCE_DIR}/api/embed.cmake VERBATIM)
    set(${out} ${made} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
    return()
endif()
if(GZIP)
    set(ENV{SOURCE_DATE_EPOCH} 0) # otherwise the output would depend on the time
    file(ARCHIVE_CREATE OUTPUT ${GZIP} PATHS ${INPUT} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    return()
endif()
file(STRINGS ${FILES} files)
set(arrays "")
set(rows "")
foreach(file ${files})
    if(ROOT)
        file(RELATIVE_PATH path ${ROOT} ${file})
    else()
        get_filename_component(path ${file} NAME)
    endif()
    string(MAKE_C_IDENTIFIER ${path} name)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n    "
           bytes "${bytes}")
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 32 hash)
    string(APPEND arrays "static const unsigned char ${name}[] = {\n    ${bytes} 0};\n")
    string(APPEND rows "    {\"${path}\", ${name}, sizeof ${name} - 1, \"\\\"${hash}\\\"\"},\n")
endforeach()
file(WRITE ${OUTPUT} "/* A table of files, made by embed.cmake. */
#include \"api/embedded.h\"

${arrays}
static const struct mm_embedded_file rows[] = {
${rows}};
extern const struct mm_embedded_files ${TABLE};
const struct mm_embedded_files ${TABLE} = {rows, sizeof rows / sizeof rows[0]};
")
