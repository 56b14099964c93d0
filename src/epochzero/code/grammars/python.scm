; Captures have the same names in every language; parse.py says what each means.
(comment) @comment
(string) @string
(interpolation) @code
(expression_statement . (string) @doc .)
(expression_statement . (concatenated_string) @doc .)
(concatenated_string) @literal
(decorated_definition definition: (_) @wrapped)
(import_statement) @import
(import_from_statement) @import
(future_import_statement) @import
(class_definition) @class
(function_definition) @function
(call function: [(identifier) @call (attribute attribute: (identifier) @call)])
[(raise_statement) (assert_statement)] @raise
