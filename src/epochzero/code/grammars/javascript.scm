(comment) @comment
[(string) (template_string) (regex)] @string
(template_substitution) @code
(import_statement) @import
(export_statement source: (_)) @import
(call_expression
  function: (identifier) @_require
  arguments: (arguments . (string) @require .)
  (#eq? @_require "require"))
[(class_declaration) (class)] @class
[
  (function_declaration) (generator_function_declaration) (method_definition)
  (variable_declarator value: [(arrow_function) (function_expression) (generator_function)])
  (pair value: [(arrow_function) (function_expression)])
  (field_definition value: [(arrow_function) (function_expression)])
  (assignment_expression right: [(arrow_function) (function_expression)])
] @function
(call_expression function: [
  (identifier) @call
  (member_expression property: (property_identifier) @call)
])
(new_expression constructor: [
  (identifier) @call
  (member_expression property: (property_identifier) @call)
])
(throw_statement) @raise
