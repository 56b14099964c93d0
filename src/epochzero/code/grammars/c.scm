(comment) @comment
[(string_literal) (char_literal) (system_lib_string)] @string
(concatenated_string) @literal
(preproc_include) @import
(struct_specifier body: (_)) @class
(union_specifier body: (_)) @class
(enum_specifier body: (_)) @class
(function_definition) @function
(call_expression function: [
  (identifier) @call
  (field_expression field: (field_identifier) @call)
])
