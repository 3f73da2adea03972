# embed_text(OUTPUT FILE FUNCTION): a source file whose FUNCTION, a full name, returns the text of
# FILE, so that programs need no data beside them.
function(embed_text output file namespace function)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "(................................................................)" "\"\\1\"\n" lines "${hex}")
  string(REGEX REPLACE "\n([0-9a-f]+)$" "\n\"\\1\"" lines "${lines}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" lines "${lines}")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT "#include <string_view>

namespace @namespace@ {

std::string_view @function@();

std::string_view @function@() {
  static constexpr char text[] =
@lines@;
  return {text, sizeof(text) - 1};
}

}  // namespace @namespace@
")
  # Longer than what every compiler must take; GCC and Clang take it.
  set_source_files_properties("${output}" PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
endfunction()
