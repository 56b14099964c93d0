(comment) @comment
[(string_literal) (raw_string_literal) (char_literal) (system_lib_string)] @string
(concatenated_string) @literal
(preproc_include) @import
(template_declaration [(class_specifier) (struct_specifier) (union_specifier) (function_definition)] @wrapped)
(class_specifier body: (_)) @class
(struct_specifier body: (_)) @class
(union_specifier body: (_)) @class
(enum_specifier body: (_)) @class
(function_definition) @function
(call_expression function: [
  (identifier) @call
  (field_expression field: (field_identifier) @call)
  (field_expression field: (template_method name: (field_identifier) @call))
  (qualified_identifier) @call
  (template_function name: (identifier) @call)
])
(throw_statement) @raise
