(comment) @comment
[(interpreted_string_literal) (raw_string_literal) (rune_literal)] @string
(import_spec) @import
(type_spec) @class
[(function_declaration) (method_declaration)] @function
(call_expression function: [
  (identifier) @call
  (selector_expression field: (field_identifier) @call)
])
