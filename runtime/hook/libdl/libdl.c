/* libdl.c: names for the linker only, in the place of libdl.so.2 as it was up to glibc 2.33.
 * Loaders up to 2.29 look for a version only in the file that was named when the shim was linked.
 */
void dladdr(void), dlclose(void), dlerror(void), dlopen(void), dlsym(void), dlvsym(void);

void dladdr(void)
{
}

void dlclose(void)
{
}

void dlerror(void)
{
}

void dlopen(void)
{
}

void dlsym(void)
{
}

void dlvsym(void)
{
}
