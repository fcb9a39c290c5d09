/* A library that does nothing, to be preloaded. */
int tccl_some_library(void);

int tccl_some_library(void)
{
    return 1;
}
