# SPDX-License-Identifier: MIT
# cmake -DINPUT=file -DOUTPUT=file.c -P embed.cmake: a text becomes the array errand__tour_text.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REPEAT "." 75 line) # 15 bytes
string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
file(WRITE "${OUTPUT}.new" "/* Made by embed.cmake; do not edit. */
#include \"program.h\"

const char errand__tour_text[] = {
    ${bytes}
};
const size_t errand__tour_size = sizeof errand__tour_text;
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
