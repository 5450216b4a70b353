"""Names that generated C must not use: of the languages, of its headers, and its own."""

from __future__ import annotations

import re

from culaunch._base.c_keywords import KEYWORDS

# Keywords, macros of the languages' headers, and names that the output itself defines.
_WORDS = """
    I complex imaginary noreturn assert errno stdin stdout stderr offsetof setjmp va_arg va_copy
    va_end va_start NULL EOF NAN INFINITY NDEBUG TRUE FALSE linux unix i386 main
    size_t ptrdiff_t intptr_t uintptr_t intmax_t uintmax_t
    stream grid_x grid_y grid_z config
"""
WORDS = KEYWORDS | frozenset(_WORDS.split())

# Functions that the headers of the source declare, or that compilers know without a declaration.
_FUNCTIONS = """
    abort abs access acos acosh alloca asctime asin asinh atan atan2 atanh atexit atof atoi atol
    atoll bcmp bcopy bsearch bzero calloc cbrt ceil clearerr clock close copysign cos cosh creat
    ctime difftime div dprintf drem dup dup2 dysize environ erf erfc execv execve execvp exit exp
    exp10 exp2 expm1 explicit_bzero fabs fclose fdim feof ferror fflush ffs ffsl ffsll fgetc fgets
    finite floor fma fmax fmin fmod fopen fork fprintf fputc fputs fread free freopen frexp fscanf
    fseek ftell fwrite gamma getc getchar getenv getpid gets gmtime hypot ilogb index isalnum
    isalpha isascii isblank iscntrl isdigit isfinite isgraph isgreater isgreaterequal isinf isless
    islessequal islessgreater islower isnan isnormal isprint ispunct isspace isunordered isupper
    isxdigit fpclassify signbit j0 j1 jn kill labs ldexp ldiv lgamma link llabs lldiv llrint
    llround localtime log log10 log1p log2 logb longjmp lrint lround malloc memccpy memchr memcmp
    memcpy memmove mempcpy memset mktime modf nan nanosleep nearbyint nextafter nexttoward open
    perror pipe pow pow10 printf putc putchar puts qsort raise rand read realloc remainder remove
    remquo rename rewind rindex rint round sbrk scalb scalbln scalbn scanf select setbuf setvbuf
    signal significand sin sincos sinh sleep snprintf sprintf sqrt srand sscanf stpcpy stpncpy
    strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror strfmon strftime strlen
    strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn
    strstr strtod strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system tan tanh
    tgamma time timegm timelocal tmpfile tmpnam toascii tolower toupper trunc tzset ungetc unlink
    vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wait write y0 y1 yn
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
# The same for float and long double, as in math.h.
FUNCTION_SUFFIXES = ("f", "l")

# Families of names: of the compiler, cuda.h, stdint.h, POSIX threads, and this source.
FAMILIES = re.compile(
    r"__.*|_[A-Z].*|CU.*|cu[A-Z].*|cuda[A-Z].*|cuuint\w*|cudbg.*|u?int\w*_t|culaunch_.*"
    r"|(pthread|sched|timer|clock)_.*|(PTHREAD|SCHED|TIMER|CLOCKS?|FLT|DBL|LDBL|SEEK|EXIT)_[A-Z]\w*"
    r"|(U?INT\w*|PTRDIFF|S?SIZE|SIG_ATOMIC|WCHAR|WINT|[SU]?CHAR|U?SHRT|U?L?LONG|RAND)_(MAX|MIN|BIT)"
    r"|U?INT\w*_C|M_(E|PI|LN|LOG|SQRT|\d)\w*|FP_[A-Z]\w*|HUGE_VAL\w*|MATH_ERR\w*"
)
