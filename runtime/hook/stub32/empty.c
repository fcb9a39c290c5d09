/* What is loaded into 32-bit programs in place of the shim: nothing. */
