# Makes files a part of the program. Included, it defines mm_embed; as a script, with INPUT, OUTPUT and NAME, it
# writes a file's bytes as a C array: NAME, ended by NUL, and NAME_bytes, its length without that. With GZIP it
# compresses INPUT.

# mm_embed(OUT TABLE ROOT FILE…): OUT gets the C files for a target: one for each FILE, an absolute path, and `struct
# mm_embedded_files TABLE` with a row for each. A row's path begins at the folder ROOT; if that is empty, it is the name.
function(mm_embed out table root)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${table}.c)
    set(arrays "")
    set(rows "")
    foreach(file ${ARGN})
        if(root)
            file(RELATIVE_PATH path ${root} ${file})
        else()
            get_filename_component(path ${file} NAME)
        endif()
        string(MAKE_C_IDENTIFIER ${table}_${path} name)
        mm_embed_array(array ${file} ${name})
        list(APPEND made ${array})
        string(APPEND arrays "extern const unsigned char ${name}[];\nextern const size_t ${name}_bytes;\n"
                             "extern const char ${name}_etag[];\n")
        string(APPEND rows "    {\"${path}\", ${name}, &${name}_bytes, ${name}_etag},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${table}.c @ONLY CONTENT [[
/* A table of files, made by embed.cmake. */
#include "api/embedded.h"

@arrays@
static const struct mm_embedded_file rows[] = {
@rows@};
extern const struct mm_embedded_files @table@;
const struct mm_embedded_files @table@ = {rows, sizeof rows / sizeof rows[0]};
]])
    set(${out} ${made} PARENT_SCOPE)
endfunction()

# mm_embed_array(OUT FILE NAME): the C file of one array.
function(mm_embed_array out file name)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
    add_custom_command(OUTPUT ${made}
        COMMAND ${CMAKE_COMMAND} -D INPUT=${file} -D OUTPUT=${made} -D NAME=${name}
                -P ${PROJECT_SOURCE_DIR}/api/embed.cmake
        DEPENDS ${file} ${PROJECT_SOURCE_DIR}/api/embed.cmake VERBATIM)
    set(${out} ${made} PARENT_SCOPE)
endfunction()

# mm_embed_gzip(OUT FILE): FILE compressed, in the build folder, under its name with .gz behind it.
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
    set(ENV{SOURCE_DATE_EPOCH} 0) # else gzip's head has the time of the build, so each build would have other ETags
    file(ARCHIVE_CREATE OUTPUT ${GZIP} PATHS ${INPUT} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    return()
endif()
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n    "
       bytes "${bytes}")
file(SHA256 ${INPUT} hash)
string(SUBSTRING ${hash} 0 32 hash)
get_filename_component(source ${INPUT} NAME)
file(WRITE ${OUTPUT} "/* ${source}, made by embed.cmake. */
#include <stddef.h>

extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_bytes;
extern const char ${NAME}_etag[];
const unsigned char ${NAME}[] = {
    ${bytes} 0};
const size_t ${NAME}_bytes = sizeof ${NAME} - 1;
const char ${NAME}_etag[] = \"\\\"${hash}\\\"\";
")
