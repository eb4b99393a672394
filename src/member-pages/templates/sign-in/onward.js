document.getElementById('response').submit();
